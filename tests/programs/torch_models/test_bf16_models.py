"""Modules of bf16 as programs: as exact as eager mode, by schedules for bf16."""

from typing import Any

import pytest

pytestmark = pytest.mark.mlir

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

from torch import nn  # noqa: E402 - after the skip

import tuner.torch  # noqa: E402
from benchmarks.model_zoo.models import MODELS, build  # noqa: E402
from tuner.core.grouped_program import CONTRACTION  # noqa: E402

F = torch.nn.functional
OF_BF16 = ("contraction_cpu_amx", "contraction_cpu_pairs")
ROUNDINGS = 2**-8  # of the largest number: PyTorch and tuner may round once more where the other does not


def errors(module: Any, inputs: tuple[Any, ...]) -> tuple[float, float, Any]:
    """Returns the errors of eager mode and of a program against f32, of the largest number; the program."""
    with torch.no_grad():
        program = tuner.torch.compile(module, inputs)
        eager, found = module(*inputs).float(), program(*inputs).float()
        exact = module.float()(*(each.float() for each in inputs))
    largest = exact.abs().max()
    return float((eager - exact).abs().max() / largest), float((found - exact).abs().max() / largest), program


@pytest.mark.parametrize("name", ["mlp", "encoder", "llama_mlp"])
def test_a_model_of_bf16_is_as_exact_as_in_eager_mode(name: str) -> None:
    model = next(each for each in MODELS if each.name == name)
    module, inputs = build(model, torch.bfloat16)
    of_eager, of_ours, program = errors(module, inputs)
    assert of_ours <= of_eager + 2 * ROUNDINGS
    groups = program.function.code.groups
    assert {each.strategy for each in groups if each.kind == CONTRACTION} <= set(OF_BF16)
    assert all(each.strategy for each in groups)


class Sums(nn.Module):
    """Sums and means of many numbers, and GELU, which torch-mlir would compute in bf16."""

    def forward(self, x: Any) -> Any:
        return x.sum(-1), x.mean(-1), (x * x).mean((0, 1)), F.gelu(x)


def test_sums_of_bf16_are_of_f32_as_in_eager_mode() -> None:
    torch.manual_seed(0)
    x = torch.rand(3, 1000).to(torch.bfloat16)
    program = tuner.torch.compile(Sums(), (x,))
    for found, expected in zip(program(x), Sums()(x), strict=True):
        torch.testing.assert_close(found, expected, rtol=2**-7, atol=0)


def test_nan_and_infinities_pass_through_a_layer_of_bf16() -> None:
    torch.manual_seed(0)
    layer = nn.Linear(35, 18).to(torch.bfloat16).eval()
    x = torch.randn(5, 35).to(torch.bfloat16)
    x[1, 34], x[3, 0] = torch.nan, torch.inf
    with torch.no_grad():
        found, expected = tuner.torch.compile(layer, (x,))(x), layer(x)
    torch.testing.assert_close(found, expected, rtol=2**-6, atol=2**-7, equal_nan=True)
