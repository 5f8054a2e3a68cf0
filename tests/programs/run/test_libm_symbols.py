from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.programs.lowering.compiled import host_function

pytestmark = pytest.mark.mlir

libm_symbols = pytest.importorskip("tuner.programs.run.runner_functions")

TEXT = """func.func @f(%a: tensor<16xf32>) -> tensor<16xf32> {{
  %e = tensor.empty() : tensor<16xf32>
  %s = linalg.{0} ins(%a : tensor<16xf32>) outs(%e : tensor<16xf32>) -> tensor<16xf32>
  return %s : tensor<16xf32>
}}"""


@pytest.mark.parametrize("name", ["exp", "tanh", "log", "sqrt", "abs", "floor"])
def test_functions_of_numbers_give_what_numpy_gives(name: str) -> None:
    a = np.linspace(0.1, 4, 16, dtype=np.float32)
    np.testing.assert_allclose(host_function(TEXT.format(name))(a), getattr(np, name)(a), rtol=1e-6)


OP = """func.func @f(%a: memref<16xf32>, %b: memref<16xf32>, %n: memref<16xi32>, %y: memref<16xf32>) {{
  affine.for %i = 0 to 16 {{
    %x = affine.load %a[%i] : memref<16xf32>
    %z = affine.load %b[%i] : memref<16xf32>
    %k = affine.load %n[%i] : memref<16xi32>
    {0}
    affine.store %r, %y[%i] : memref<16xf32>
  }}
  return
}}"""
FORMULAS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "%r = math.rsqrt %x : f32": lambda x, _z, _k: 1 / np.sqrt(x),
    "%r = math.copysign %x, %z : f32": lambda x, z, _k: np.copysign(x, z),
    "%r = math.fpowi %z, %k : f32, i32": lambda _x, z, k: z.astype(np.float64) ** k,
    "%is = math.isnan %z : f32 %r = arith.select %is, %x, %z : f32": lambda x, z, _k: np.where(
        np.isnan(z), x, z
    ),
}


@pytest.mark.parametrize("op", FORMULAS)
def test_what_the_library_lacks_gives_what_numpy_gives(op: str) -> None:
    a = np.linspace(0.1, 4, 16, dtype=np.float32)
    b = np.linspace(-2, 2, 16, dtype=np.float32)
    b[3] = np.nan
    n, y = np.arange(-8, 8, dtype=np.int32), np.zeros(16, np.float32)
    host_function(OP.format(op))(a, b, n, y)
    np.testing.assert_allclose(y, FORMULAS[op](a, b, n), rtol=1e-6)


def test_math_next_to_kernels_gives_what_numpy_gives() -> None:
    text = """func.func @f(%x: f32, %y: memref<64xf32>) {
      %e = math.exp %x : f32
      %r = math.rsqrt %e : f32
      linalg.fill ins(%r : f32) outs(%y : memref<64xf32>)
      return
    }"""
    from benchmarks.fuzzing.program_check import SIMULATOR
    from benchmarks.program_compiler import compiler_of
    from tuner.programs.run.device_function import DeviceFunction
    from tuner.simulator.device.simulated_device import SimulatedDevice

    program = DeviceFunction(compiler_of(SIMULATOR).compile(text, None, None).code, SimulatedDevice("sm_90"))
    y = np.zeros(64, np.float32)
    program(np.float32(0.5), y)
    program.close()
    np.testing.assert_allclose(y, np.exp(-0.25), rtol=1e-6)


def test_only_what_the_library_has_is_found() -> None:
    text = "llvm.func @math_expf(f32) -> f32\nllvm.func @math_none(f32) -> f32\nllvm.func @malloc(i64)"
    assert set(libm_symbols.math_symbols(text)) == {"math_expf"}
