import numpy as np
import pytest

from tests.programs.lowering.compiled import host_function

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.programs.lowering.host")

HEAD = """%c1 = arith.constant 1 : index %c2 = arith.constant 2 : index %c3 = arith.constant 3 : index
  %c5 = arith.constant 5 : index %one = arith.constant 1.0 : f32"""


def program(body: str, grid: str = "%c2, %c3, %c1", block: str = "%c5, %c1, %c2") -> str:
    """Returns a launch of 2 x 3 blocks of 5 x 1 x 2 threads unless told otherwise."""
    blocks = ", ".join(f"%g{axis} = {size}" for axis, size in zip("xyz", grid.split(", "), strict=True))
    sizes = ", ".join(f"%s{axis} = {size}" for axis, size in zip("xyz", block.split(", "), strict=True))
    return f"""func.func @f(%a: memref<2x3x5x2xf32>) {{
      {HEAD}
      gpu.launch blocks(%bx, %by, %bz) in ({blocks}) threads(%tx, %ty, %tz) in ({sizes}) {{
        {body}
        gpu.terminator
      }}
      return
    }}"""


@pytest.mark.slow
def test_every_thread_of_every_block_runs_once() -> None:
    body = """%x = memref.load %a[%bx, %by, %tx, %tz] : memref<2x3x5x2xf32>
      %y = arith.addf %x, %one : f32
      memref.store %y, %a[%bx, %by, %tx, %tz] : memref<2x3x5x2xf32>"""
    a = np.zeros((2, 3, 5, 2), np.float32)
    host_function(program(body))(a)
    assert (a == 1).all()


def test_sizes_and_global_indices_are_those_of_the_launch() -> None:
    body = """%n = gpu.grid_dim y
      %m = gpu.block_dim x
      %g = gpu.global_id x
      %s = arith.muli %n, %m : index
      %t = arith.addi %s, %g : index
      %i = arith.index_cast %t : index to i32
      %v = arith.sitofp %i : i32 to f32
      memref.store %v, %a[%bx, %by, %tx, %tz] : memref<2x3x5x2xf32>"""
    a = np.zeros((2, 3, 5, 2), np.float32)
    host_function(program(body))(a)
    np.testing.assert_array_equal(a[:, 0, :, 0], 15 + np.arange(10).reshape(2, 5))


def test_two_kernels_of_one_name_stay_two() -> None:
    launch = (
        "gpu.launch_func @{0}::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%a : memref<f32>)"
    )
    kernel = """gpu.module @{0} {{ gpu.func @k(%a: memref<f32>) kernel {{
        %x = memref.load %a[] : memref<f32>
        %c = arith.constant {1} : f32
        %y = arith.{2} %x, %c : f32
        memref.store %y, %a[] : memref<f32>
        gpu.return }} }}"""
    text = f"""module attributes {{gpu.container_module}} {{
      {kernel.format("m", "3.0", "addf")} {kernel.format("n", "2.0", "mulf")}
      func.func @f(%a: memref<f32>) {{ {HEAD} {launch.format("m")} {launch.format("n")} return }} }}"""
    a = np.array(4, np.float32)
    host_function(text)(a)
    assert a == 14


def test_device_memory_becomes_host_memory_and_tokens_vanish() -> None:
    text = """func.func @f(%a: memref<4xf32>, %b: memref<4xf32>) {
      %two = arith.constant 2.0 : f32
      %t0 = gpu.wait async
      %d, %t1 = gpu.alloc async [%t0] () : memref<4xf32>
      %t2 = gpu.memset async [%t1] %d, %two : memref<4xf32>, f32
      %t3 = gpu.memcpy async [%t2] %b, %d : memref<4xf32>, memref<4xf32>
      %t4 = gpu.memcpy async [%t3] %d, %a : memref<4xf32>, memref<4xf32>
      %t5 = gpu.dealloc async [%t4] %d : memref<4xf32>
      gpu.wait [%t5]
      return
    }"""
    function = host_function(text)
    b = np.zeros(4, np.float32)
    function(np.ones(4, np.float32), b)
    assert (b == 2).all()
    assert function.allocations == 0
