"""Floating-point arithmetic beyond the table of ``tests.operators``: fused multiply-add, remainder, signs."""

import math
from fractions import Fraction
from typing import Any, Literal

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.programs.interpret.lane_kernels import DTYPES, applied

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.programs.interpret.decode.floats")

LANES = 24
# Kind -> digits of its fraction, and the exponent of the smallest number.
FORMATS = {"f16": (11, -24), "bf16": (8, -133), "f32": (24, -149), "f64": (53, -1074)}
WIDE_KINDS = ("f32", "f64")


def nearest(exact: Fraction, kind: str) -> float:
    """Returns the number of a type that is nearest, of two such the even one."""
    if exact == 0:
        return 0.0
    digits, least = FORMATS[kind]
    exponent = max(_exponent(abs(exact)) - digits + 1, least)
    step = Fraction(2) ** exponent
    return float(round(exact / step) * step)


def _exponent(exact: Fraction) -> int:
    """Returns e where 2**e <= exact < 2**(e+1)."""
    guess = exact.numerator.bit_length() - exact.denominator.bit_length()
    return guess if Fraction(2) ** guess <= exact else guess - 1


def floats(kind: str) -> Any:
    """Draws numbers of a type whose sums and products are in its range."""
    most = 128.0 if kind == "f16" else 2.0**50
    widths: dict[str, Literal[16, 32, 64]] = {"f16": 16, "bf16": 32, "f32": 32, "f64": 64}
    drawn = st.floats(-most, most, width=widths[kind], allow_nan=False)
    listed = st.lists(drawn, min_size=LANES, max_size=LANES)
    return listed.map(lambda numbers: np.array(numbers).astype(DTYPES[kind]))


@pytest.mark.parametrize("kind", WIDE_KINDS)
@hypothesis.given(st.data())
@hypothesis.settings(max_examples=20, deadline=None)
def test_a_fused_multiply_add_is_rounded_once(kind: str, data: Any) -> None:
    a, b = data.draw(floats(kind)), data.draw(floats(kind))
    near = data.draw(floats(kind))
    c = np.where(np.arange(LANES) % 2 == 0, -(a * b), near).astype(a.dtype)  # what is left is the rounding
    found = applied(f"%r = math.fma %a, %b, %c : {kind}", DTYPES[kind], a, b, c)
    for x, y, z, r in zip(a, b, c, found, strict=True):
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        if abs(exact) < Fraction(2) ** -900:
            assert abs(float(r)) <= 2.0**-899  # products of halves may vanish in float64
        elif kind == "f32":
            assert float(r) == nearest(exact, kind)
        else:
            assert math.isclose(float(r), nearest(exact, kind), rel_tol=2**-52)


@pytest.mark.parametrize("kind", FORMATS)
def test_a_remainder_has_the_sign_of_the_dividend_and_a_negation_changes_that_of_zero(kind: str) -> None:
    one, other = (np.array(each).astype(DTYPES[kind]) for each in ([7.5, -7.5, 7.5, -0.0], [2, 2, -2, 1]))
    found = applied(f"%r = arith.remf %a, %b : {kind}", DTYPES[kind], one, other).astype(float)
    np.testing.assert_array_equal(found, [1.5, -1.5, 1.5, -0.0])
    negated = applied(f"%r = arith.negf %a : {kind}", DTYPES[kind], one).astype(float)
    np.testing.assert_array_equal(negated, [-7.5, 7.5, -7.5, 0.0])
    assert np.signbit(negated).tolist() == [True, False, True, False]
