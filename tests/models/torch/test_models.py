"""Models of bf16, with products of int8 or with attentions: as exact as eager mode, by schedules for them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.mlir

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

from torch import nn  # noqa: E402 - after the skip

import tuner.torch  # noqa: E402
from benchmarks.model_zoo.convolutional import batch_norm  # noqa: E402
from benchmarks.model_zoo.models import MODELS, build  # noqa: E402
from tests.models.exports.export import Function  # noqa: E402
from tests.models.exports.signatures import QuantizedLinear  # noqa: E402
from tuner.core.fusions import ATTENTION, CONTRACTION, CONVOLUTION, ELEMENTWISE  # noqa: E402
from tuner.core.instruction_sets import NEON  # noqa: E402
from tuner.core.problem_classes import TextProblem  # noqa: E402
from tuner.mlir.fusions.function import fusion_arguments  # noqa: E402
from tuner.models.torch.export import export_module  # noqa: E402
from tuner.models.tunable_fusions import tunable_fusions  # noqa: E402
from tuner.runtime.cpu.host import describe_machine  # noqa: E402

F = torch.nn.functional
OF_BF16 = ("contraction_cpu_amx", "contraction_cpu_pairs")
ROUNDINGS = 2**-8  # of the largest number: PyTorch and tuner may round once more where the other does not


def fusions_as_exact(module: Any, inputs: tuple[Any, ...]) -> Any:
    """Compares the errors of a program and of eager mode against f32; returns the program's fusions."""
    with torch.no_grad():
        program: Any = tuner.torch.compile(module, inputs)
        eager, found = module(*inputs).float(), program(*inputs).float()
        exact = module.float()(*(each.float() for each in inputs))
    of_eager, of_ours = (float((each - exact).abs().max() / exact.abs().max()) for each in (eager, found))
    assert of_ours <= of_eager + 2 * ROUNDINGS
    return program.function.code.fusions


def model_of_bf16(name: str) -> tuple[Any, tuple[Any, ...]]:
    return build(next(each for each in MODELS if each.name == name), torch.bfloat16)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", ["mlp", "encoder", "llama_mlp", "resnet", "mobilenet"])
def test_a_model_of_bf16_is_as_exact_as_in_eager_mode(name: str) -> None:
    module, inputs = model_of_bf16(name)
    fusions = fusions_as_exact(module, inputs)
    assert {each.strategy for each in fusions if each.kind == CONTRACTION} <= set(OF_BF16)
    assert all(each.strategy for each in fusions)


IMAGE = (1, 8, 12, 12)


class Normed(nn.Module):
    """A convolution without padding, batch norm, a residual of the input's middle, relu."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution, self.norm = nn.Conv2d(8, 8, 3, bias=False), batch_norm(8)

    def forward(self, x: Any) -> Any:
        return F.relu(self.norm(self.convolution(x)) + x[:, :, 1:-1, 1:-1])


CONVOLUTIONS: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "padded": (lambda: nn.Conv2d(8, 16, 3, padding=1), IMAGE),
    "batch": (lambda: nn.Conv2d(5, 7, 3, padding=1), (3, 5, 9, 11)),
    "stride_2": (lambda: nn.Conv2d(8, 16, 3, stride=2, padding=1), IMAGE),
    "dilated": (lambda: nn.Conv2d(8, 8, 3, padding=2, dilation=2), IMAGE),
    "depthwise": (lambda: nn.Conv2d(8, 8, 5, stride=2, padding=2, groups=8), IMAGE),
    "grouped": (lambda: nn.Conv2d(8, 16, 3, padding=1, groups=4), IMAGE),
    "1x1": (lambda: nn.Conv2d(8, 24, 1), IMAGE),
    "one_dimension": (lambda: nn.Conv1d(6, 10, 5, padding=2), (2, 6, 20)),
    "transposed": (lambda: nn.ConvTranspose2d(6, 4, 3, stride=2, padding=1), (1, 6, 7, 7)),
    "batch_norm_residual_relu": (Normed, IMAGE),
    "two": (lambda: nn.Sequential(nn.Conv2d(8, 12, 3, padding=1), nn.ReLU(), nn.Conv2d(12, 8, 3)), IMAGE),
}


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_a_convolution_of_bf16_has_a_schedule_and_is_as_exact_as_in_eager_mode(name: str) -> None:
    torch.manual_seed(0)
    make, shape = CONVOLUTIONS[name]
    module, x = make().eval().to(torch.bfloat16), torch.randn(shape).to(torch.bfloat16)
    fusions = fusions_as_exact(module, (x,))
    strategies = {each.strategy for each in fusions if each.kind == CONVOLUTION}
    assert strategies == {"depthwise_cpu" if name == "depthwise" else "convolution_cpu"}
    assert all(each.strategy for each in fusions)


@pytest.mark.slow
def test_a_1x1_convolution_of_bf16_multiplies_bf16_and_threads_do_not_change_a_bit() -> None:
    torch.manual_seed(0)
    alone = nn.Conv2d(8, 24, 1).eval().to(torch.bfloat16)
    x = torch.randn(1, 8, 48, 48).to(torch.bfloat16)  # 4608 bytes a channel: a page or more
    assert {each.strategy for each in fusions_as_exact(alone, (x,))} <= set(OF_BF16)
    each = nn.Conv2d(24, 24, 3, padding=1, groups=24)
    module = nn.Sequential(nn.Conv2d(8, 24, 1), each).eval().to(torch.bfloat16)
    fusions = fusions_as_exact(module, (x,))
    assert [fusion.kind for fusion in fusions] == [CONTRACTION, ELEMENTWISE, CONVOLUTION]
    assert fusions[1].ops == ("arith.extf",)
    module, inputs = model_of_bf16("resnet")
    one, three = (tuner.torch.compile(module, inputs, threads=threads)(*inputs) for threads in (1, 3))
    assert torch.equal(one, three)


@pytest.mark.slow
def test_sums_of_bf16_are_of_f32_and_nan_and_infinities_pass_through_a_layer() -> None:
    """Sums and means of many numbers, and GELU, which torch-mlir would compute in bf16."""
    torch.manual_seed(0)
    x = torch.rand(3, 1000).to(torch.bfloat16)
    module = Function(lambda x: (x.sum(-1), x.mean(-1), (x * x).mean((0, 1)), F.gelu(x)))
    for found, expected in zip(tuner.torch.compile(module, (x,))(x), module(x), strict=True):
        torch.testing.assert_close(found, expected, rtol=2**-7, atol=0)
    torch.manual_seed(0)
    layer = nn.Linear(35, 18).to(torch.bfloat16).eval()
    x = torch.randn(5, 35).to(torch.bfloat16)
    x[1, 34], x[3, 0] = torch.nan, torch.inf
    with torch.no_grad():
        found, expected = tuner.torch.compile(layer, (x,))(x), layer(x)
    torch.testing.assert_close(found, expected, rtol=2**-6, atol=2**-7, equal_nan=True)


# Products of int8: by schedules for i8, with the integers that PyTorch has.
OF_BYTES = {"contraction_cpu_amx", "contraction_cpu_vnni"}


class Products(nn.Module):
    def __init__(self, weight: Any) -> None:
        super().__init__()
        self.register_buffer("weight", weight)

    def forward(self, x: Any) -> Any:
        turned = self.weight.int().t()  # after it is extended
        return torch._int_mm(x, self.weight), torch.matmul(x.int(), turned.t()), x.int() @ self.weight.int()  # noqa: SLF001


def schedules(program: Any) -> list[tuple[str, str]]:
    return [(each.kind, each.strategy) for each in program.function.code.fusions]


@pytest.mark.filterwarnings("ignore:.*is scalar loops")  # on a processor without dot products of bytes
def test_products_of_bytes_are_exact_and_have_schedules() -> None:
    torch.manual_seed(0)
    x, weight = (torch.randint(-128, 128, shape, dtype=torch.int8) for shape in ((17, 35), (35, 50)))
    module = Products(weight).eval()
    program = tuner.torch.compile(module, (x,))
    for found, expected in zip(program(x), module(x), strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=0)
    if describe_machine().isa != NEON:
        of_products = [strategy for kind, strategy in schedules(program) if kind == CONTRACTION]
        assert of_products
        assert set(of_products) <= OF_BYTES


@pytest.mark.filterwarnings("ignore:.*is scalar loops")  # on a processor without dot products of bytes
@pytest.mark.slow
def test_a_quantized_layer_is_a_fusion_for_its_input_and_one_for_its_product() -> None:
    torch.manual_seed(0)
    module, x = QuantizedLinear(70, 33).eval(), torch.randn(9, 70)
    with torch.no_grad():
        program = tuner.torch.compile(module, (x,))
        torch.testing.assert_close(program(x), module(x), rtol=1e-6, atol=1e-6)
        module.scale[[1, 4, 32]] = torch.tensor([torch.nan, torch.inf, -torch.inf])
        special = tuner.torch.compile(module, (x,))
        torch.testing.assert_close(special(x), module(x), rtol=1e-6, atol=1e-6, equal_nan=True)
    if describe_machine().isa != NEON:
        (of_input, quantizes), (of_product, multiplies) = schedules(program)
        assert (of_input, quantizes) == ("elementwise", "elementwise_cpu")
        assert (of_product, multiplies in OF_BYTES) == (CONTRACTION, True)


# A long attention is one fusion by ``attention_cpu``.
HEADS, WIDTH = 2, 24


class SelfAttention(nn.Module):
    """Attention of all positions to those that a mask shows, with projections before and after it."""

    def __init__(self, positions: int, *, is_explicit: bool) -> None:
        super().__init__()
        self.is_explicit = is_explicit
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.register_buffer("seen", torch.rand(positions, positions) > 0.3)
        self.seen[7] = False

    def forward(self, x: Any) -> Any:
        positions = x.shape[0]
        q, k, v = (each.view(positions, HEADS, -1).transpose(0, 1) for each in self.qkv(x).chunk(3, -1))
        if self.is_explicit:
            scores = (q @ k.transpose(-2, -1) * 0.25).masked_fill(~self.seen, -torch.inf)
            y = torch.softmax(scores, -1) @ v
        else:
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=self.seen)
        return self.out(y.transpose(0, 1).reshape(positions, WIDTH))


def made(positions: int, *, is_explicit: bool) -> tuple[Any, Any]:
    torch.manual_seed(0)
    return SelfAttention(positions, is_explicit=is_explicit).eval(), torch.randn(positions, WIDTH)


@pytest.mark.slow
@pytest.mark.parametrize("is_explicit", [True, False])
def test_a_long_attention_is_one_fusion_that_gives_what_eager_mode_gives(is_explicit: bool) -> None:
    """A row of which nothing is seen is NaN if written out, 0 by torch's own attention."""
    module, x = made(523, is_explicit=is_explicit)
    program: Any = tuner.torch.compile(module, (x,))
    with torch.no_grad():
        expected = module(x).numpy()
    np.testing.assert_allclose(program(x).numpy(), expected, rtol=1e-4, atol=1e-5)
    assert np.isnan(expected[7]).all() == is_explicit
    (fusion,) = [each for each in program.function.code.fusions if each.kind == ATTENTION]
    assert fusion.strategy == "attention_cpu"
    product, power = "linalg.batch_matmul", "math.exp"
    assert [each for each in fusion.ops if "matmul" in each or "exp" in each] == [product, power, product]
    assert fusion.flop == 2 * HEADS * 523 * 523 * WIDTH


@pytest.mark.slow
def test_an_attention_is_tuned_as_one_problem() -> None:
    module, x = made(520, is_explicit=False)
    found = tunable_fusions(export_module(module, (x,)).text, None, "warm", describe_machine())
    (problem,) = [each.problem for each in found.problems if each.problem.operation == ATTENTION]
    assert isinstance(problem, TextProblem)
    assert problem.extents == (HEADS, 520, 520, WIDTH // HEADS)
    assert len(fusion_arguments(problem.text)) == 5  # queries, keys, the mask, values; the result
