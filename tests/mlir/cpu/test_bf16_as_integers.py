"""bf16 on any processor: rounding, arithmetic and moves, compared with ml_dtypes."""

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.texts import text_beside
from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.mlir.cpu.bf16_emulation import store_bf16_as_integers
from tuner.mlir.cpu.lowering import jit_text
from tuner.runtime.cpu.jit import CompiledFunction, JittedModule, PackedArguments

Array = Any
LANES = 16
VECTOR = f"vector<{LANES}xbf16>"
WIDE = f"vector<{LANES}xf32>"
WIDENED = "llvm.func @f(%x: bf16) -> f32 { %wide = llvm.fpext %x : bf16 to f32 llvm.return %wide : f32 }"
SHOWN = {store_bf16_as_integers: (WIDENED,)}


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
    return (high[:, None] | np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32)[None, :]).reshape(-1)


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
    call = compiled(text_beside(__file__, "ARITHMETIC"))
    pairs = np.random.default_rng(0).standard_normal((200, 2)).astype(ml_dtypes.bfloat16)
    third = np.float32(ml_dtypes.bfloat16(0.333786))
    for pair in pairs:
        found = np.zeros(1, ml_dtypes.bfloat16)
        call(pair, found)
        x, y = pair.astype(np.float32)
        product = np.float32(ml_dtypes.bfloat16(x * third))
        assert found[0] == min(ml_dtypes.bfloat16(np.float32(np.float64(product) * y + x)), pair[1])


def test_numbers_are_passed_collected_and_kept_in_constants() -> None:
    call = compiled(text_beside(__file__, "COLLECTED"), more=text_beside(__file__, "SECOND"))
    found = np.zeros(2, np.float32)
    call(np.array([1.5], ml_dtypes.bfloat16), found)
    assert found.tolist() == [1.5, -3.75]
