"""Maxima and minima with a constant are LLVM's own to the bit: NaNs, both zeros, infinities."""

import ctypes
import math
from typing import Any

import numpy as np
import pytest

from tests.mlir.kernels import changed
from tests.texts import text_beside
from tuner.runtime.cpu.bounds import compare_with_constants
from tuner.runtime.cpu.jit import JittedModule

pytestmark = pytest.mark.mlir
RELU = text_beside(__file__, "RELU")
SHOWN = {compare_with_constants: (RELU,)}
NUMBERS = np.array([math.nan, math.inf, -math.inf, 0.0, -0.0, 1e-45, -2.0, 6.0], np.float32)
LIMITS = {"0.0": 0.0, "-0.0": -0.0, "6.0": 6.0, "-2.0": -2.0, "0x7F800000": math.inf, "0xFF800000": -math.inf}


def bounded(text: str) -> Any:
    """Returns what compiled code makes of NUMBERS, in place."""
    numbers = NUMBERS.copy()
    address = ctypes.c_void_p(numbers.ctypes.data)
    arguments = (ctypes.c_void_p * 2)(*[ctypes.addressof(address)] * 2)
    module = JittedModule(text, ("bounded",))
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(module.addresses["bounded"])(arguments)
    return numbers


@pytest.mark.parametrize("kind", ["maximum", "minimum"])
@pytest.mark.parametrize("limit", LIMITS)
def test_each_bound_is_that_of_llvm_to_the_bit(kind: str, limit: str) -> None:
    for operands in ("%vector, %limit", "%limit, %vector"):
        text = filled_text(kind, limit, operands)
        before, after, _ = changed(compare_with_constants, text)
        stays = (kind, limit) == ("minimum", "-0.0")
        assert (before == after) == stays
        assert ("llvm.fadd" in after) == ((kind, limit) == ("maximum", "0.0"))
        found, expected = bounded(after), exact(kind, LIMITS[limit])
        assert np.isnan(found[0])
        np.testing.assert_array_equal(found[1:].view(np.int32), expected[1:].view(np.int32))


def exact(kind: str, limit: float) -> Any:
    """Returns the bounds of NUMBERS, where -0.0 is less than 0.0."""
    choose = max if kind == "maximum" else min
    keys = [(number, math.copysign(1.0, number)) for number in NUMBERS[1:].tolist()]
    chosen = [choose(key, (limit, math.copysign(1.0, limit)))[0] for key in keys]
    return np.array([math.nan, *chosen], np.float32)


def filled_text(kind: str, limit: str, operands: str) -> str:
    """Returns the module of one bound."""
    text = text_beside(__file__, "BOUNDED")
    return text.replace("KIND", kind).replace("LIMIT", limit).replace("OPERANDS", operands)


def test_two_values_and_a_constant_that_is_nan_stay() -> None:
    two = RELU.replace("%x, %c", "%x, %x")
    nan = RELU.replace("dense<0.0>", "dense<0x7FC00000>")
    for text in (two, nan):
        before, after, _ = changed(compare_with_constants, text)
        assert before == after
