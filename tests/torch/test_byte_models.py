"""Modules with products of int8: by schedules for i8, with the integers that PyTorch has."""

from typing import Any

import pytest

pytestmark = pytest.mark.mlir

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

from torch import nn  # noqa: E402 - after the skip

import tuner.torch  # noqa: E402
from tests.programs.exports.signatures import QuantizedLinear  # noqa: E402
from tuner.core.fusions import CONTRACTION  # noqa: E402
from tuner.runtime.cpu.host import describe_machine  # noqa: E402

OF_BYTES = {"contraction_cpu_amx", "contraction_cpu_vnni"}


class Products(nn.Module):
    """Three ways to multiply int8 into int32."""

    def __init__(self, weight: Any) -> None:
        super().__init__()
        self.register_buffer("weight", weight)

    def forward(self, x: Any) -> Any:
        turned = self.weight.int().t()  # after it is extended
        return torch._int_mm(x, self.weight), torch.matmul(x.int(), turned.t()), x.int() @ self.weight.int()  # noqa: SLF001


def schedules(program: Any) -> list[tuple[str, str]]:
    """Returns the kind and the strategy of each fusion."""
    return [(each.kind, each.strategy) for each in program.function.code.fusions]


def test_products_of_bytes_are_exact_and_have_schedules() -> None:
    torch.manual_seed(0)
    x, weight = (torch.randint(-128, 128, shape, dtype=torch.int8) for shape in ((17, 35), (35, 50)))
    module = Products(weight).eval()
    program = tuner.torch.compile(module, (x,))
    for found, expected in zip(program(x), module(x), strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=0)
    if describe_machine().has_vnni:
        of_products = [strategy for kind, strategy in schedules(program) if kind == CONTRACTION]
        assert of_products
        assert set(of_products) <= OF_BYTES


@pytest.mark.slow
def test_a_quantized_layer_is_a_fusion_for_its_input_and_one_for_its_product() -> None:
    torch.manual_seed(0)
    module, x = QuantizedLinear(70, 33).eval(), torch.randn(9, 70)
    with torch.no_grad():
        program = tuner.torch.compile(module, (x,))
        torch.testing.assert_close(program(x), module(x), rtol=1e-6, atol=1e-6)
    if describe_machine().has_vnni:
        (of_input, quantizes), (of_product, multiplies) = schedules(program)
        assert (of_input, quantizes) == ("elementwise", "elementwise_cpu")
        assert (of_product, multiplies in OF_BYTES) == (CONTRACTION, True)


@pytest.mark.slow
def test_nan_and_infinities_of_scales_are_those_of_torch() -> None:
    torch.manual_seed(0)
    module, x = QuantizedLinear(70, 33).eval(), torch.randn(9, 70)
    module.scale[[1, 4, 32]] = torch.tensor([torch.nan, torch.inf, -torch.inf])
    with torch.no_grad():
        program = tuner.torch.compile(module, (x,))
        torch.testing.assert_close(program(x), module(x), rtol=1e-6, atol=1e-6, equal_nan=True)
