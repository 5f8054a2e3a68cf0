import pytest

from tests.mlir.kernels import parsed
from tuner.core.errors import CandidateError
from tuner.core.gpu import TensorMapLayout
from tuner.mlir.ir.reading import walk

pytestmark = pytest.mark.mlir

tensor_maps = pytest.importorskip("tuner.mlir.gpu.tensor_maps")
KIND = (
    "!nvgpu.tensormap.descriptor<tensor = memref<8x{n}x{e}, 3>, swizzle = {s}, l2promo = l2promo_256b, "
    "oob = {o}, interleave = none>"
)


def text(
    element: str = "f16",
    swizzle: str = "swizzle_128b",
    fill: str = "zero",
    source: str = "memref<100x96x{e}, strided<[104, 1]>>",
    box: str = "%c8, %cn",
    attributes: str = "",
) -> str:
    n = {"f16": 64, "f32": 32, "i32": 32}.get(element, 128)
    kind, memref = KIND.format(n=n, e=element, s=swizzle, o=fill), source.format(e=element)
    return f"""func.func @f(%a: {memref}, %any: index) {{
      %c8 = arith.constant 8 : index
      %cn = arith.constant {n} : index
      %u = memref.cast %a : {memref} to memref<*x{element}>
      %m = nvgpu.tma.create.descriptor %u box[{box}] {attributes} : memref<*x{element}> -> {kind}
      return
    }}"""


def layout(program: str, sizes: tuple[int, ...] | None = None) -> TensorMapLayout:
    with parsed(program) as module:
        found: TensorMapLayout = tensor_maps.layout_of(walk(module, tensor_maps.TENSOR_MAP)[0], sizes)
    return found


def test_a_layout_is_innermost_first_in_the_drivers_numbers() -> None:
    expected = TensorMapLayout((96, 100), (208,), (64, 8), 6, swizzle=3, l2_promotion=3)
    assert layout(text()) == expected


def test_true_sizes_may_be_given() -> None:
    assert layout(text(), (90, 95)).sizes == (95, 90)


def test_copies_of_f32_may_round_to_tf32() -> None:
    assert layout(text("f32")).dtype == 7
    assert layout(text("f32", attributes="{tuner.tf32}")).dtype == 11


@pytest.mark.parametrize("element", ["i8", "f8E4M3FN", "f8E5M2"])
def test_elements_of_8_bits_are_copied_as_bytes(element: str) -> None:
    found = layout(text(element, source="memref<100x96x{e}>"))
    assert (found.dtype, found.strides_bytes, found.box) == (0, (96,), (128, 8))


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (text(source="memref<?x96x{e}, strided<[104, 1]>>"), "allowed a memref of static sizes"),
        (text("i32"), "found i32, oob zero, interleave none, allowed floats"),
        (text(fill="nan"), "found f16, oob nan, interleave none, allowed floats and i8, oob zero"),
        (text(box="%any, %cn"), "found a box of sizes that are not constant, allowed constants"),
    ],
)
def test_other_maps_are_refused(program: str, reason: str) -> None:
    with pytest.raises(CandidateError, match=reason):
        layout(program)
