"""Models and attentions as torch-mlir exports them: the fusions that they become, and what these compute."""

import math
from typing import Any

import numpy as np
import pytest

from tests.default_suite import ALL
from tests.models.fusions.host_execution import FusedFunction, formed
from tests.models.lowering.compiled import cpu_function
from tests.models.payload_runs import listed
from tuner.core.fusions import ATTENTION
from tuner.mlir.fusions.facts import facts_of
from tuner.models.fusions import formation
from tuner.models.fusions.payload import NotFused
from tuner.models.fusions.pipeline import fuse_program
from tuner.models.linked_programs import compile_fusions
from tuner.models.run.fused_code import FusedImage
from tuner.models.run.fused_program import FusedFunction as CompiledFunction
from tuner.runtime.cpu.host import describe_machine

WHY = "torch is not installed: it makes the exports that these tests group"
torch: Any = pytest.importorskip("torch", reason=WHY)
corpus = pytest.importorskip("tests.models.exports.corpus", reason=WHY)
export = pytest.importorskip("tests.models.exports.export", reason=WHY)
functional: Any = torch.nn.functional
pytestmark = [pytest.mark.mlir, pytest.mark.filterwarnings("ignore")]
LETTERS = {"contraction": "C", "convolution": "V", "rows": "R", "elementwise": "E", "loops": "L"}
MODELS = {  # in the order of the fusions
    "mlp_relu": "CCC",
    "linear_of_one_row": "C",
    "attention_cached_step": "EEEEECRC",
    "encoder": "RCECRCCRCC",
    "llama": "RCEEEEECEEEEEECRCECRCC",
    "gpt2": "LERCEEECRCECRCCRC",
    "vit": "VEEERCEEECRCECRCCRC",
    "resnet": "EVEEVVEEVVVVRC",
    "conv_pool_linear": "VEC",
}
HEADS, QUERIES, KEYS = 2, 9, 11


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_fusions_of_a_model_are_as_expected_and_compute_what_the_model_computes(name: str) -> None:
    made, text = corpus.built(name), corpus.text_of(name)
    program = formed(text)
    assert "".join(LETTERS[fusion.kind] for fusion in program.program.fusions) == MODELS[name]
    arrays = [export.array_of(each) for each in made.inputs]
    fusions = FusedFunction(program)
    fusions(*arrays)
    found = fusions(*arrays)
    export.require_equal(found, made.expected, corpus.EXPORTS[name].tolerance)
    for one, other in zip(found, listed(cpu_function(text)(*arrays)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


class Inverted(torch.nn.Module):  # type: ignore[misc,unused-ignore]
    """A pointwise convolution, then a depthwise one whose padding is not in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.expand, self.filter = torch.nn.Conv2d(4, 16, 1), torch.nn.Conv2d(16, 16, 3, padding=1, groups=16)

    def forward(self, x: Any) -> Any:
        return torch.relu(self.filter(torch.relu(self.expand(x))))


def test_padding_joins_the_depthwise_convolution_that_reads_it() -> None:
    torch.manual_seed(0)
    module, x = Inverted().eval(), torch.randn(1, 4, 30, 30)
    text = str(export.exported_text(module, (x,)))
    program = formed(text)
    assert kinds(text) == ["contraction", "convolution"]
    assert "tensor.pad" in program.program.fusions[1].ops
    assert all(buffer.padding is None for buffer in program.program.buffers)
    (found,) = listed(FusedFunction(program)(x.numpy()))
    with torch.no_grad():
        np.testing.assert_allclose(found, module(x).numpy(), rtol=1e-5, atol=1e-5)
    of_a_device = fuse_program(text, keeps_forks=True)
    assert not isinstance(of_a_device, NotFused)
    assert "linalg.copy" in [name for fusion in of_a_device.program.fusions for name in fusion.ops]


def test_padding_of_a_convolution_by_an_argument_stays_in_memory() -> None:
    """Zeros times an infinite weight are NaN; rows of padding that join are not multiplied."""

    def filtered(x: Any, weight: Any) -> Any:
        return functional.conv2d(x.relu(), weight, padding=1, groups=8)

    program = formed(exported(filtered, [torch.randn(1, 8, 9, 9), torch.randn(8, 1, 3, 3)]))
    assert any(buffer.padding == 0 for buffer in program.program.buffers)


@pytest.mark.parametrize("side", [7, 14])
def test_the_bias_of_a_pointwise_convolution_joins_it(side: int) -> None:
    torch.manual_seed(0)
    module, x = torch.nn.Conv2d(16, 32, 1).eval(), torch.randn(1, 16, side, side)
    text = str(export.exported_text(module, (x,)))
    assert kinds(text) == ["convolution"]
    (found,) = listed(FusedFunction(formed(text))(x.numpy()))
    with torch.no_grad():
        np.testing.assert_allclose(found, module(x).numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan])
def test_padding_is_multiplied_by_weights_that_are_not_finite(number: float) -> None:
    torch.manual_seed(0)
    module, x = Inverted().eval(), torch.randn(1, 4, 30, 30)
    with torch.no_grad():
        module.filter.weight[3, 0, 0, 0] = number
    text = str(export.exported_text(module, (x,)))
    assert kinds(text) == ["contraction", "loops"]
    image = compile_fusions(text, None, describe_machine())
    assert isinstance(image, FusedImage)
    found = CompiledFunction(image.code, tuple(image.weights))(x.numpy())
    (expected,) = listed(cpu_function(text)(x.numpy()))
    assert np.isnan(expected[0, 3]).sum() >= 59  # the padded row and column
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def weights(q: Any, k: Any) -> Any:
    return torch.softmax(q @ k.transpose(-2, -1) * 0.5, -1)


def attended(q: Any, k: Any, v: Any, mask: Any) -> Any:
    return torch.softmax(q @ k.transpose(-2, -1) * 0.5 + mask, -1) @ v


def fused(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def tensors(kind: Any = None, keys: int = KEYS) -> list[Any]:
    torch.manual_seed(0)
    shapes = ((1, HEADS, QUERIES, 4), (1, HEADS, keys, 4), (1, HEADS, keys, 6))
    return [torch.randn(shape, dtype=kind or torch.float32) for shape in shapes]


def exported(compute: Any, inputs: list[Any]) -> str:
    return str(export.exported_text(export.Function(compute).eval(), tuple(inputs)))


def kinds(text: str) -> list[str]:
    return [fusion.kind for fusion in formed(text).program.fusions]


BIAS = torch.randn(QUERIES, KEYS)
SEEN = torch.arange(KEYS) < torch.arange(QUERIES)[:, None]  # of the first row nothing
FORMS: dict[str, tuple[Any, list[Any]]] = {
    "plain": (lambda q, k, v: weights(q, k) @ v, []),
    "bias": (attended, [BIAS]),
    "of each head": (attended, [torch.randn(1, HEADS, QUERIES, KEYS)]),
    "padding": (attended, [torch.zeros(1, 1, 1, KEYS).masked_fill(torch.arange(KEYS) > 8, -torch.inf)]),
    "filled": (lambda q, k, v: torch.softmax((q @ k.mT).masked_fill(~SEEN, -torch.inf), -1) @ v, []),
    "sdpa": (fused, []),
    "sdpa with a bias": (fused, [BIAS]),
    "sdpa with truths": (fused, [SEEN]),
    "causal sdpa": (lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=True), []),
    "with a residual": (lambda q, k, v: torch.relu(weights(q, k) @ v + v[:, :, :QUERIES]), []),
    "one head": (lambda q, k, v: weights(q[0, 0], k[0, 0]) @ v[0, 0], []),
}


@pytest.fixture
def _of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LEAST_KEYS", "LEAST_SCORES"):
        monkeypatch.setattr(formation, name, 1)


@pytest.mark.drawn(1)
@pytest.mark.usefixtures("_of_any_size")
@pytest.mark.parametrize("name", FORMS)
def test_each_form_is_one_fusion_that_computes_what_torch_computes(name: str) -> None:
    compute, more = FORMS[name]
    inputs = [*tensors(), *more]
    program = formed(exported(compute, inputs))
    (found,) = [fusion for fusion in program.program.fusions if fusion.kind == ATTENTION]
    assert (sum("matmul" in each for each in found.ops), "math.exp" in found.ops) == (2, True)
    result = FusedFunction(program)(*(each.numpy() for each in inputs))
    expected = compute(*inputs).numpy()
    np.testing.assert_allclose(np.asarray(result).reshape(expected.shape), expected, rtol=1e-4, atol=1e-5)


STEPS = torch.arange(KEYS) - torch.arange(QUERIES)[:, None]
CAUSAL = torch.full((QUERIES, KEYS), -torch.inf).triu(1)
LATE = torch.full((QUERIES, KEYS), -torch.inf).triu(1 + KEYS - QUERIES)
WINDOW, OF_HEADS = (STEPS < 3) & (STEPS > -3), torch.stack((CAUSAL, LATE))
VISIBLE = {  # mask -> the first and the last key that a row sees, from its own number on
    "causal": (lambda q, k, v: attended(q, k, v, CAUSAL), (-8, 0)),
    "of the last positions": (lambda q, k, v: attended(q, k, v, LATE), (-8, 2)),
    "the least number": (
        lambda q, k, v: attended(q, k, v, CAUSAL.clamp(torch.finfo(torch.float32).min)),
        (-8, 0),
    ),
    "filled": (lambda q, k, v: torch.softmax((q @ k.mT).masked_fill(STEPS > 0, -torch.inf), -1) @ v, (-8, 0)),
    "a window": (
        lambda q, k, v: torch.softmax(torch.where(WINDOW, q @ k.mT, -torch.inf), -1) @ v,
        (-2, 2),
    ),
    "of heads": (lambda q, k, v: attended(q, k, v, OF_HEADS), (-8, 2)),
    "sdpa": (lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=True), (-8, 0)),
    "sdpa with truths": (lambda q, k, v: fused(q, k, v, STEPS <= 0), (-8, 0)),
    "no mask": (FORMS["plain"][0], None),
    "a bias": (lambda q, k, v: attended(q, k, v, BIAS), None),
    "a row without keys": (lambda q, k, v: fused(q, k, v, SEEN), None),
    "scores that are cut": (lambda q, k, v: torch.softmax((q @ k.mT + CAUSAL).clamp(-1.0), -1) @ v, None),
}


@pytest.mark.drawn(2)
@pytest.mark.usefixtures("_of_any_size")
@pytest.mark.parametrize("name", VISIBLE)
def test_keys_that_a_mask_of_the_program_hides_are_known(name: str) -> None:
    compute, band = VISIBLE[name]
    inputs = tensors()
    program = formed(exported(compute, inputs))
    assert {facts_of(each.text).visible for each in program.program.fusions if each.kind == ATTENTION} == {
        band
    }
    result = FusedFunction(program)(*(each.numpy() for each in inputs))
    expected = compute(*inputs).numpy()
    np.testing.assert_allclose(np.asarray(result).reshape(expected.shape), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("_of_any_size")
def test_a_mask_that_is_an_argument_hides_nothing_that_is_known() -> None:
    inputs = [*tensors(), CAUSAL]
    found = [each for each in formed(exported(attended, inputs)).program.fusions if each.kind == ATTENTION]
    assert [facts_of(each.text).visible for each in found] == [None]


@pytest.mark.drawn(ALL)
@pytest.mark.usefixtures("_of_any_size")
@pytest.mark.parametrize(
    "compute",
    [
        lambda q, k, v: (weights(q, k) @ v, weights(q, k)),  # the weights are a result
        lambda q, k, v: (weights(q, k) @ v, q @ k.transpose(-2, -1)),  # the scores are
        lambda q, k, v: v.mT @ weights(q, k).mT,  # the weights are B
        lambda q, k, v: torch.relu(q @ k.mT) @ v,  # no rows
    ],
)
def test_what_others_read_is_no_part_of_an_attention(compute: Any) -> None:
    assert ATTENTION not in kinds(exported(compute, tensors()))


@pytest.mark.slow
@pytest.mark.usefixtures("_of_any_size")
def test_products_of_f64_are_joined_and_those_of_bf16_are_not() -> None:
    assert ATTENTION in kinds(exported(FORMS["plain"][0], tensors(torch.float64)))
    assert ATTENTION not in kinds(exported(FORMS["plain"][0], tensors(torch.bfloat16)))
    assert ATTENTION in kinds(exported(fused, tensors(torch.bfloat16)))  # its products are of f32


@pytest.mark.usefixtures("_of_any_size")
def test_a_device_has_three_fusions() -> None:
    found = fuse_program(exported(FORMS["plain"][0], tensors()), keeps_forks=True)
    assert not isinstance(found, NotFused)
    assert ATTENTION not in [fusion.kind for fusion in found.program.fusions]


@pytest.mark.parametrize("least", ["LEAST_KEYS", "LEAST_SCORES"])
@pytest.mark.usefixtures("_of_any_size")
def test_short_rows_and_few_scores_are_three_fusions(least: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = {"LEAST_KEYS": KEYS, "LEAST_SCORES": HEADS * QUERIES * KEYS}
    text = exported(FORMS["plain"][0], tensors())
    monkeypatch.setattr(formation, least, scores[least])
    assert ATTENTION in kinds(text)
    monkeypatch.setattr(formation, least, scores[least] + 1)
    assert kinds(text)[-3:] == ["contraction", "rows", "contraction"]
