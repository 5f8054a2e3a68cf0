import re

import pytest

from tests.mlir.kernels import changed, parsed
from tests.texts import filled
from tuner.core.compiled_code import TensorMapLayout
from tuner.core.errors import CandidateError
from tuner.gpu.mlir import tensor_maps
from tuner.gpu.mlir.shared_memory import use_dynamic_shared_memory
from tuner.mlir.ir.reading import walk

TILE = "memref<16x64xf16, #gpu.address_space<workgroup>>"
MAP = "!nvgpu.tensormap.descriptor<tensor = {}, swizzle = {}, l2promo = none, oob = zero, interleave = none>"
ALLOCATION = f"%m = memref.alloc() : {TILE} %x = memref.load %m[%c0, %c0] : {TILE}"
ALIGNED = [("none", 0, 128), ("none", 256, 256), ("swizzle_128b", 64, 1024)]


def program(swizzle: str = "none", alignment: str = "", body: str = "") -> str:
    return filled(__file__, "PROGRAM", kind=MAP.format(TILE, swizzle), alignment=alignment, body=body)


def test_a_kernel_takes_the_address_of_a_map_and_its_launch_passes_it() -> None:
    _, text, _ = changed(tensor_maps.pass_tensor_maps_by_address, program())
    assert "gpu.func @k(%arg0: index, %arg1: !llvm.ptr, %arg2: memref<4xf32>)" in text
    assert re.search(r"args\(%\w+ : index, %\w+ : !llvm.ptr, %\w+ : memref<4xf32>\)", text)
    assert text.count("builtin.unrealized_conversion_cast") == 2


@pytest.mark.parametrize(("swizzle", "given", "expected"), ALIGNED)
def test_shared_memory_is_aligned_for_boxes(swizzle: str, given: int, expected: int) -> None:
    text = program(swizzle, f"{{alignment = {given} : i64}}" if given else "")
    assert f"{{alignment = {expected} : i64}}" in changed(tensor_maps.align_shared_globals, text)[1]
    if given != 256:
        *_, (block,) = changed(use_dynamic_shared_memory, program(swizzle, body=ALLOCATION), 1 << 16)
        assert (block.bytes, block.alignment_bytes) == (16 * 64 * 2, expected)


def test_globals_stay_where_no_kernel_takes_a_map() -> None:
    text = program().replace(MAP.format(TILE, "none"), "memref<*xf16>")
    text = re.sub(r"%map = nvgpu.*|nvgpu.tma.prefetch.*", "", text).replace("%map :", "%any :")
    for change in (tensor_maps.align_shared_globals, tensor_maps.pass_tensor_maps_by_address):
        before, after, _ = changed(change, text)
        assert after == before


def text(
    element: str = "f16",
    swizzle: str = "swizzle_128b",
    fill: str = "zero",
    source: str = "memref<100x96x{e}, strided<[104, 1]>>",
    box: str = "%c8, %cn",
    attributes: str = "",
) -> str:
    n = {"f16": 64, "f32": 32, "i32": 32}.get(element, 128)
    kind = MAP.format(f"memref<8x{n}x{element}, 3>", swizzle).replace("oob = zero", f"oob = {fill}")
    kind = kind.replace("l2promo = none", "l2promo = l2promo_256b")
    parts = {"memref": source.format(e=element), "n": n, "element": element, "box": box}
    return filled(__file__, "CREATED", **parts, attributes=attributes, kind=kind)


def layout(program: str, sizes: tuple[int, ...] | None = None) -> TensorMapLayout:
    with parsed(program) as module:
        found: TensorMapLayout = tensor_maps.layout_of(walk(module, tensor_maps.TENSOR_MAP)[0], sizes)
    return found


def test_a_layout_is_innermost_first_in_the_drivers_numbers() -> None:
    expected = TensorMapLayout((96, 100), (208,), (64, 8), 6, swizzle=3, l2_promotion=3)
    assert layout(text()) == expected
    assert layout(text(), (90, 95)).sizes == (95, 90)  # true sizes
    assert layout(text("f32")).dtype == 7
    assert layout(text("f32", attributes="{tuner.tf32}")).dtype == 11
    for element in ("i8", "f8E4M3FN", "f8E5M2"):  # copied as bytes
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
