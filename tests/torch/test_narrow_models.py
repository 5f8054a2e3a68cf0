"""Modules of bf16 and with products of int8: as exact as eager mode, by schedules for their types."""

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.mlir

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

from torch import nn  # noqa: E402 - after the skip

import tuner.torch  # noqa: E402
from benchmarks.model_zoo.convolutional import batch_norm  # noqa: E402
from benchmarks.model_zoo.models import MODELS, build  # noqa: E402
from tests.programs.exports.signatures import QuantizedLinear  # noqa: E402
from tuner.core.fusions import CONTRACTION, CONVOLUTION, ELEMENTWISE  # noqa: E402
from tuner.runtime.cpu.host import describe_machine  # noqa: E402

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


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", ["mlp", "encoder", "llama_mlp", "resnet", "mobilenet"])
def test_a_model_of_bf16_is_as_exact_as_in_eager_mode(name: str) -> None:
    model = next(each for each in MODELS if each.name == name)
    module, inputs = build(model, torch.bfloat16)
    of_eager, of_ours, program = errors(module, inputs)
    assert of_ours <= of_eager + 2 * ROUNDINGS
    fusions = program.function.code.fusions
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


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_a_convolution_of_bf16_has_a_schedule_and_is_as_exact_as_in_eager_mode(name: str) -> None:
    torch.manual_seed(0)
    make, shape = CONVOLUTIONS[name]
    module, x = make().eval().to(torch.bfloat16), torch.randn(shape).to(torch.bfloat16)
    of_eager, of_ours, program = errors(module, (x,))
    assert of_ours <= of_eager + 2 * ROUNDINGS
    fusions = program.function.code.fusions
    assert {each.strategy for each in fusions if each.kind == CONVOLUTION} == {"convolution_cpu"}
    assert all(each.strategy for each in fusions)


@pytest.mark.slow
def test_a_large_1x1_convolution_of_bf16_multiplies_bf16_and_is_extended_where_it_is_padded() -> None:
    torch.manual_seed(0)
    alone = nn.Conv2d(8, 24, 1).eval().to(torch.bfloat16)
    x = torch.randn(1, 8, 48, 48).to(torch.bfloat16)  # 4608 bytes a channel: a page or more
    of_eager, of_ours, program = errors(alone, (x,))
    assert of_ours <= of_eager + 2 * ROUNDINGS
    assert {each.strategy for each in program.function.code.fusions} <= set(OF_BF16)
    each = nn.Conv2d(24, 24, 3, padding=1, groups=24)
    module = nn.Sequential(nn.Conv2d(8, 24, 1), each).eval().to(torch.bfloat16)
    of_eager, of_ours, program = errors(module, (x,))
    assert of_ours <= of_eager + 2 * ROUNDINGS
    fusions = program.function.code.fusions
    assert [fusion.kind for fusion in fusions] == [CONTRACTION, ELEMENTWISE, CONVOLUTION]
    assert fusions[1].ops == ("arith.extf",)


@pytest.mark.slow
def test_threads_do_not_change_a_bit_of_a_convolution_of_bf16() -> None:
    model = next(each for each in MODELS if each.name == "resnet")
    module, inputs = build(model, torch.bfloat16)
    one, three = (tuner.torch.compile(module, inputs, threads=threads)(*inputs) for threads in (1, 3))
    assert torch.equal(one, three)


class Sums(nn.Module):
    """Sums and means of many numbers, and GELU, which torch-mlir would compute in bf16."""

    def forward(self, x: Any) -> Any:
        return x.sum(-1), x.mean(-1), (x * x).mean((0, 1)), F.gelu(x)


@pytest.mark.slow
def test_sums_of_bf16_are_of_f32_as_in_eager_mode() -> None:
    torch.manual_seed(0)
    x = torch.rand(3, 1000).to(torch.bfloat16)
    program = tuner.torch.compile(Sums(), (x,))
    for found, expected in zip(program(x), Sums()(x), strict=True):
        torch.testing.assert_close(found, expected, rtol=2**-7, atol=0)


@pytest.mark.slow
def test_nan_and_infinities_pass_through_a_layer_of_bf16() -> None:
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
        module.scale[[1, 4, 32]] = torch.tensor([torch.nan, torch.inf, -torch.inf])
        special = tuner.torch.compile(module, (x,))
        torch.testing.assert_close(special(x), module(x), rtol=1e-6, atol=1e-6, equal_nan=True)
    if describe_machine().has_vnni:
        (of_input, quantizes), (of_product, multiplies) = schedules(program)
        assert (of_input, quantizes) == ("elementwise", "elementwise_cpu")
        assert (of_product, multiplies in OF_BYTES) == (CONTRACTION, True)
