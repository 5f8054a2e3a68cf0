import pytest

from tests.programs.lower.reading import read

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.programs.lower.deallocation")


def test_allocations_of_a_function_that_frees_nothing_are_freed() -> None:
    text = read("func.func @f(%x: memref<4xf32>) { %a = memref.alloc() : memref<4xf32> "
                "memref.copy %x, %a : memref<4xf32> to memref<4xf32> return }")  # fmt: skip
    assert text.count("memref.alloc()") == text.count("memref.dealloc") == 1


def test_what_a_function_frees_itself_is_left_to_it() -> None:
    text = read("func.func @f() -> memref<4xf32> { %a = memref.alloc() : memref<4xf32> "
                "%b = memref.alloc() : memref<4xf32> memref.copy %a, %b : memref<4xf32> to memref<4xf32> "
                "memref.dealloc %a : memref<4xf32> "
                "return %b : memref<4xf32> }")  # fmt: skip
    assert text.count("memref.dealloc") == 1


def test_memory_of_outlined_kernels_is_freed_behind_their_launch() -> None:
    text = """module attributes {gpu.container_module} {
      gpu.module @m { gpu.func @k(%a: memref<4xf32>) kernel { gpu.return } }
      func.func @f() {
        %c1 = arith.constant 1 : index
        %a = memref.alloc() : memref<4xf32>
        gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%a : memref<4xf32>)
        return
      } }"""
    assert read(text).index("gpu.launch_func") < read(text).index("memref.dealloc")


def test_memory_of_kernels_with_a_barrier_is_freed_behind_them() -> None:
    text = """func.func @f(%p: memref<4xf32>) {
        %c1 = arith.constant 1 : index
        %a = memref.alloc() : memref<4xf32>
        memref.copy %p, %a : memref<4xf32> to memref<4xf32>
        gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
                   threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
          %x = memref.load %a[%bx] : memref<4xf32>
          gpu.barrier
          memref.store %x, %p[%bx] : memref<4xf32>
          gpu.terminator
        }
        return
      }"""
    assert read(text).index("gpu.terminator") < read(text).index("memref.dealloc")
