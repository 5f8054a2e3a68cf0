"""Floating-point arithmetic beyond the table of ``tests.operators``: fused multiply-add, remainder, signs."""

import math
from fractions import Fraction
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.programs.interpreter.lane_kernels import DTYPES, applied
from tests.simulator.ptx.snippets import rounded

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.programs.interpreter.scalar_ops")

LANES = 24
PRECISIONS = {"f32": "f4", "f64": "f8"}


def floats(kind: str) -> Any:
    """Draws numbers of a type whose sums and products are in its range."""
    drawn = st.floats(-(2.0**50), 2.0**50, width=32 if kind == "f32" else 64, allow_nan=False)
    listed = st.lists(drawn, min_size=LANES, max_size=LANES)
    return listed.map(lambda numbers: np.array(numbers).astype(DTYPES[kind]))


@pytest.mark.parametrize("kind", PRECISIONS)
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
            assert float(r) == rounded(exact, PRECISIONS[kind])
        else:
            assert math.isclose(float(r), rounded(exact, PRECISIONS[kind]), rel_tol=2**-52)


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f64"])
def test_a_remainder_has_the_sign_of_the_dividend_and_a_negation_changes_that_of_zero(kind: str) -> None:
    one, other = (np.array(each).astype(DTYPES[kind]) for each in ([7.5, -7.5, 7.5, -0.0], [2, 2, -2, 1]))
    found = applied(f"%r = arith.remf %a, %b : {kind}", DTYPES[kind], one, other).astype(float)
    np.testing.assert_array_equal(found, [1.5, -1.5, 1.5, -0.0])
    negated = applied(f"%r = arith.negf %a : {kind}", DTYPES[kind], one).astype(float)
    np.testing.assert_array_equal(negated, [-7.5, 7.5, -7.5, 0.0])
    assert np.signbit(negated).tolist() == [True, False, True, False]
