"""bf16 on any processor: rounding, arithmetic and moves, compared with ml_dtypes."""

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.mlir.cpu.lowering import jit_text
from tuner.runtime.cpu.jit import CompiledFunction, JittedModule, PackedArguments

pytestmark = pytest.mark.mlir

Array = Any
LANES = 16
VECTOR = f"vector<{LANES}xbf16>"
WIDE = f"vector<{LANES}xf32>"


@pytest.fixture(autouse=True)
def context() -> Iterator[None]:
    with transform.new_context(), ir.Location.unknown():
        yield


def compiled(body: str, *, more: str = "") -> Callable[[Array, Array], None]:
    """Compiles a function of two addresses, %from and %to, to be called with arrays."""
    text = f"""{more}
llvm.func @f(%from: !llvm.ptr, %to: !llvm.ptr) attributes {{llvm.emit_c_interface}} {{
{body}
llvm.return }}"""
    code = JittedModule(jit_text(transform.parse(text, "test")), ("f",))

    def call(given: Array, result: Array) -> None:
        CompiledFunction(code.addresses["f"])(PackedArguments(given.ctypes.data, result.ctypes.data))

    return call


def bits_of_f32() -> Array:
    """Every kind of number: each high half with the low halves around a tie, in random order of lanes."""
    high = np.arange(2**16, dtype=np.uint32) << 16
    low = np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32)
    return (high[:, None] | low[None, :]).reshape(-1)


def test_rounding_is_that_of_ml_dtypes_for_every_kind_of_number() -> None:
    call = compiled(f"""
      %x = llvm.load %from {{alignment = 4 : i64}} : !llvm.ptr -> {WIDE}
      %y = llvm.fptrunc %x : {WIDE} to {VECTOR}
      llvm.store %y, %to {{alignment = 2 : i64}} : {VECTOR}, !llvm.ptr""")
    given = bits_of_f32().view(np.float32)
    found = np.zeros(given.size, np.uint16)
    for start in range(0, given.size, LANES):
        call(given[start : start + LANES], found[start : start + LANES])
    with np.errstate(invalid="ignore"):
        expected = given.astype(ml_dtypes.bfloat16).view(np.uint16)
    is_nan = np.isnan(given)
    np.testing.assert_array_equal(found[~is_nan], expected[~is_nan])
    assert np.isnan(found[is_nan].view(ml_dtypes.bfloat16).astype(np.float32)).all()


def test_arithmetic_is_done_in_f32_and_rounded_once() -> None:
    call = compiled("""
      %x = llvm.load %from : !llvm.ptr -> bf16
      %next = llvm.getelementptr %from[1] : (!llvm.ptr) -> !llvm.ptr, bf16
      %y = llvm.load %next : !llvm.ptr -> bf16
      %third = llvm.mlir.constant(3.337860e-01 : bf16) : bf16
      %product = llvm.fmul %x, %third : bf16
      %sum = llvm.intr.fma(%product, %y, %x) : (bf16, bf16, bf16) -> bf16
      %is_less = llvm.fcmp "olt" %sum, %y : bf16
      %least = llvm.select %is_less, %sum, %y : i1, bf16
      %wide = llvm.fpext %least : bf16 to f64
      %again = llvm.fptrunc %wide : f64 to bf16
      llvm.store %again, %to : bf16, !llvm.ptr""")
    rng = np.random.default_rng(0)
    pairs = rng.standard_normal((200, 2)).astype(ml_dtypes.bfloat16)
    third = np.float32(ml_dtypes.bfloat16(0.333786))
    for pair in pairs:
        found = np.zeros(1, ml_dtypes.bfloat16)
        call(pair, found)
        x, y = pair.astype(np.float32)
        product = np.float32(ml_dtypes.bfloat16(x * third))
        total = ml_dtypes.bfloat16(np.float32(np.float64(product) * y + x))
        assert found[0] == min(total, pair[1])


def test_numbers_are_passed_collected_and_kept_in_constants() -> None:
    call = compiled(
        """
      %x = llvm.load %from : !llvm.ptr -> bf16
      %y = llvm.call @second(%x, %x) : (bf16, bf16) -> bf16
      %none = llvm.mlir.poison : vector<2xbf16>
      %first = llvm.mlir.constant(0 : i64) : i64
      %other = llvm.mlir.constant(1 : i64) : i64
      %one = llvm.insertelement %x, %none[%first : i64] : vector<2xbf16>
      %two = llvm.insertelement %y, %one[%other : i64] : vector<2xbf16>
      %wide = llvm.fpext %two : vector<2xbf16> to vector<2xf32>
      llvm.store %wide, %to : vector<2xf32>, !llvm.ptr""",
        more="""
llvm.mlir.global private constant @table(dense<[1.0, -2.5]> : tensor<2xbf16>) : !llvm.array<2 x bf16>
llvm.func @second(%x: bf16, %y: bf16) -> bf16 {
  %table = llvm.mlir.addressof @table : !llvm.ptr
  %at = llvm.getelementptr %table[0, 1] : (!llvm.ptr) -> !llvm.ptr, !llvm.array<2 x bf16>
  %factor = llvm.load %at : !llvm.ptr -> bf16
  %product = llvm.fmul %factor, %y : bf16
  llvm.return %product : bf16
}""",
    )
    found = np.zeros(2, np.float32)
    call(np.array([1.5], ml_dtypes.bfloat16), found)
    assert found.tolist() == [1.5, -3.75]
