"""Drawn modules with drawn inputs and surroundings are right or refused."""

import pytest

pytestmark = pytest.mark.mlir

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("expecttest", reason="needs expecttest, which PyTorch's samples import")
drawn_modules = pytest.importorskip("benchmarks.op_corpus.drawn_modules")
module_outcome = pytest.importorskip("benchmarks.op_corpus.module_outcome")
outcome = pytest.importorskip("benchmarks.op_corpus.outcome")


@pytest.mark.drawn(1)
@pytest.mark.parametrize("first", [0, 3])  # ``python -m benchmarks.drawn_modules`` checks 200
def test_drawn_modules_are_right_or_refused(first: int) -> None:
    found = {
        (number, name): each
        for number in range(first, first + 3)
        for name, each in module_outcome.checked_module(number, seed=37).items()
    }
    assert {key: each for key, each in found.items() if each.kind in outcome.BAD} == {}
    assert sum(each.kind == outcome.RIGHT for each in found.values()) > len(found) / 2


def test_inputs_have_the_shapes_and_types_of_the_example() -> None:
    for shape in ((3, 5), (1,), (0, 2), (2, 3, 4)):
        x = torch.randn(shape)
        for variant in drawn_modules.INPUTS.values():
            assert (variant(x).shape, variant(x).dtype) == (x.shape, x.dtype)


def test_inputs_are_what_their_names_say() -> None:
    inputs, x = drawn_modules.INPUTS, torch.randn(4, 6)
    assert inputs["nan"](x).isnan().any()
    assert inputs["infinities"](x).isinf().any()
    assert 0 < inputs["denormals"](x).abs().min() < torch.finfo(torch.float32).tiny
    assert inputs["expanded"](x).stride(0) == 0
    assert not inputs["strided"](x).is_contiguous()
    assert torch.equal(inputs["strided"](x), x)
    assert inputs["negated"](x).is_neg()
    assert inputs["offset"](x).storage_offset() == 1


def test_a_surrounding_makes_the_call() -> None:
    for name, surrounded in drawn_modules.SURROUNDINGS.items():
        assert surrounded(lambda: 37) == 37, name
    assert drawn_modules.SURROUNDINGS["inference mode"](torch.is_inference_mode_enabled)
    assert drawn_modules.SURROUNDINGS["default dtype f64"](torch.get_default_dtype) is torch.float64
    assert torch.get_default_dtype() is torch.float32
