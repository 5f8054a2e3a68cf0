"""PyTorch's own samples and drawn modules are right or refused; what is neither is found."""

import random

import pytest

pytestmark = pytest.mark.mlir

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("expecttest", reason="needs expecttest, which PyTorch's samples import")
drawn_modules = pytest.importorskip("benchmarks.op_corpus.drawn_modules")
module_outcome = pytest.importorskip("benchmarks.op_corpus.module_outcome")
outcome = pytest.importorskip("benchmarks.op_corpus.outcome")
samples = pytest.importorskip("benchmarks.op_corpus.samples")

DRAWN = 4  # operators and types, seconds; ``python -m benchmarks.op_samples`` checks all


@pytest.mark.slow
@pytest.mark.drawn(1)
@pytest.mark.parametrize("seed", range(4))
def test_drawn_samples_are_right_or_refused_in_one_line(seed: int) -> None:
    pairs = random.Random(seed).sample(samples.pairs(), DRAWN)
    found = {pair: outcome.checked((samples.OpSampleName(*pair, 0),))[0] for pair in pairs}
    assert {pair: each for pair, each in found.items() if each.kind in outcome.BAD} == {}
    assert sum(each.kind == outcome.RIGHT for each in found.values()) > DRAWN / 3


@pytest.mark.slow
def test_a_sample_is_the_same_whenever_it_is_drawn_and_several_are_one_module() -> None:
    first, again, other = (samples.drawn(samples.OpSampleName("add", "f32", 0, seed)) for seed in (1, 1, 2))
    assert [torch.equal(*pair) for pair in zip(first.inputs, again.inputs, strict=True)] == [True, True]
    assert other.inputs[0].shape != first.inputs[0].shape or not torch.equal(other.inputs[0], first.inputs[0])
    assert samples.drawn(samples.OpSampleName("abs", "f32", 1000)) is None
    right = [samples.drawn(samples.OpSampleName("add", dtype, 0)) for dtype in ("f32", "i64")]
    wrong = samples.OpSample(torch.nn.functional.dropout, ((torch.arange(4.0),), {}))
    assert outcome.outcome_of(samples.OpSamples(right)).kind == outcome.RIGHT
    assert outcome.outcome_of(samples.OpSamples([*right, wrong])).kind == outcome.REFUSED


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("function", "kind", "reason"),
    [
        (torch.nn.functional.dropout, "refused", "(it draws random numbers)"),
        (lambda x: x.add_(1), "right", ""),
        (lambda x: (x.sum().item(), x + 1), "refused", "returns a number that it computes"),
        (lambda x: x.shape, "refused", "returns no tensor"),
        (lambda x: x.reshape(7), "no sample", "eager: RuntimeError"),
        (torch.exp, "right", ""),
    ],
)
def test_what_becomes_of_a_sample(function: object, kind: str, reason: str) -> None:
    found = outcome.outcome_of(samples.OpSample(function, ((torch.arange(4.0),), {})))
    assert (found.kind, "\n" in found.reason) == (kind, False)
    assert reason in found.reason


@pytest.mark.slow
@pytest.mark.parametrize("first", [0, 3])  # ``python -m benchmarks.drawn_modules`` checks 200
def test_drawn_modules_are_right_or_refused(first: int) -> None:
    checked = (module_outcome.checked_module(number, seed=37) for number in range(first, first + 3))
    found = [(name, each) for outcomes in checked for name, each in outcomes.items()]
    assert [each for each in found if each[1].kind in outcome.BAD] == []
    assert sum(each.kind == outcome.RIGHT for _, each in found) > len(found) / 2


def test_inputs_are_as_the_example_and_a_surrounding_makes_the_call() -> None:
    for shape in ((3, 5), (1,), (0, 2), (2, 3, 4)):
        x = torch.randn(shape)
        for variant in drawn_modules.INPUTS.values():
            assert (variant(x).shape, variant(x).dtype) == (x.shape, x.dtype)
    inputs, x = drawn_modules.INPUTS, torch.randn(4, 6)
    assert inputs["nan"](x).isnan().any()
    assert inputs["infinities"](x).isinf().any()
    assert 0 < inputs["denormals"](x).abs().min() < torch.finfo(torch.float32).tiny
    assert inputs["expanded"](x).stride(0) == 0
    assert not inputs["strided"](x).is_contiguous()
    assert torch.equal(inputs["strided"](x), x)
    assert inputs["negated"](x).is_neg()
    assert inputs["offset"](x).storage_offset() == 1
    for name, surrounded in drawn_modules.SURROUNDINGS.items():
        assert surrounded(lambda: 37) == 37, name
    assert drawn_modules.SURROUNDINGS["inference mode"](torch.is_inference_mode_enabled)
    assert drawn_modules.SURROUNDINGS["default dtype f64"](torch.get_default_dtype) is torch.float64
    assert torch.get_default_dtype() is torch.float32
