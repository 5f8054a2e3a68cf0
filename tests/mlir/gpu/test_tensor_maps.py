import re

import pytest

from tests.mlir.kernels import parsed

pytestmark = pytest.mark.mlir

tensor_maps = pytest.importorskip("tuner.mlir.gpu.tensor_maps")

TILE = "memref<16x64xf16, #gpu.address_space<workgroup>>"
MAP = "!nvgpu.tensormap.descriptor<tensor = {}, swizzle = {}, l2promo = none, oob = zero, interleave = none>"
PROGRAM = """
module attributes {{gpu.container_module}} {{
  gpu.module @kernels {{
    memref.global "private" @tile : {tile} {alignment}
    gpu.func @k(%n: index, %map: {map}, %a: memref<4xf32>) kernel {{
      nvgpu.tma.prefetch.descriptor %map : {map}
      %c0 = arith.constant 0 : index
      {body}
      gpu.return
    }}
  }}
  func.func @main(%any: memref<*xf16>, %a: memref<4xf32>) {{
    %c1 = arith.constant 1 : index
    %map = nvgpu.tma.create.descriptor %any box[%c1, %c1] : memref<*xf16> -> {map}
    gpu.launch_func @kernels::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%c1 : index, %map : {map}, %a : memref<4xf32>)
    return
  }}
}}"""
ALLOCATION = f"%m = memref.alloc() : {TILE} %x = memref.load %m[%c0, %c0] : {TILE}"


def program(swizzle: str = "none", alignment: str = "", body: str = "") -> str:
    return PROGRAM.format(tile=TILE, map=MAP.format(TILE, swizzle), alignment=alignment, body=body)


def test_a_kernel_takes_the_address_of_a_map_and_its_launch_passes_it() -> None:
    with parsed(program()) as module:
        tensor_maps.pass_tensor_maps_by_address(module)
        assert module.operation.verify()
        text = str(module)
    assert "gpu.func @k(%arg0: index, %arg1: !llvm.ptr, %arg2: memref<4xf32>)" in text
    assert re.search(r"args\(%\w+ : index, %\w+ : !llvm.ptr, %\w+ : memref<4xf32>\)", text)
    assert text.count("builtin.unrealized_conversion_cast") == 2


@pytest.mark.parametrize(
    ("swizzle", "alignment", "expected"),
    [
        ("none", "", 128),
        ("none", "{alignment = 256 : i64}", 256),
        ("swizzle_128b", "{alignment = 64 : i64}", 1024),
    ],
)
def test_globals_of_shared_memory_are_aligned_for_boxes(swizzle: str, alignment: str, expected: int) -> None:
    with parsed(program(swizzle, alignment)) as module:
        tensor_maps.align_shared_globals(module)
        assert f"{{alignment = {expected} : i64}}" in str(module)


@pytest.mark.parametrize(("swizzle", "expected"), [("none", 128), ("swizzle_128b", 1024)])
def test_allocations_and_dynamic_shared_memory_are_aligned_for_boxes(swizzle: str, expected: int) -> None:
    from tuner.mlir.gpu.shared_memory import use_dynamic_shared_memory

    with parsed(program(swizzle, body=ALLOCATION)) as module:
        (block,) = use_dynamic_shared_memory(module, 1 << 16)
    assert (block.bytes, block.alignment_bytes) == (16 * 64 * 2, expected)


def test_globals_stay_where_no_kernel_takes_a_map() -> None:
    text = program().replace(MAP.format(TILE, "none"), "memref<*xf16>")
    text = re.sub(r"%map = nvgpu.*|nvgpu.tma.prefetch.*", "", text).replace("%map :", "%any :")
    with parsed(text) as module:
        before = str(module)
        tensor_maps.align_shared_globals(module)
        tensor_maps.pass_tensor_maps_by_address(module)
        assert str(module) == before
