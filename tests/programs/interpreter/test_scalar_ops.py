"""Floating-point arithmetic beyond the table of ``tests.operators``: fused multiply-add, remainder, signs."""

import math
from fractions import Fraction
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.programs.interpreter.lane_kernels import DTYPES, applied, each_applied
from tests.simulator.ptx.snippets import rounded
from tests.texts import text_beside
from tuner.core.errors import CandidateError, Stage

pytestmark = pytest.mark.mlir

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


# Integer arithmetic beyond the table of ``tests.operators``: wide results, divisions by zero.

WIDTHS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64}
DIVISIONS = ("divsi", "floordivsi", "ceildivsi", "remsi", "divui", "ceildivui", "remui")


def lists(width: int, *, is_signed: bool) -> Any:
    """Draws numbers of a width, the ends of its range among them."""
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if is_signed else (0, (1 << width) - 1)
    one = st.integers(low, high) | st.sampled_from([low, high, max(low, min(0, high))])
    return st.lists(one, min_size=LANES, max_size=LANES)


def stored(numbers: list[int], kind: str) -> Any:
    """Returns the bits of numbers as an array of a signless type."""
    width = WIDTHS[kind]
    if width == 1:
        return np.array([number & 1 for number in numbers]).astype(bool)
    half = 1 << (width - 1)
    return np.array([(number + half) % (2 * half) - half for number in numbers], DTYPES[kind])


@pytest.mark.parametrize("kind", WIDTHS)
@pytest.mark.parametrize(
    ("name", "is_signed"), [("mulsi_extended", True), ("mului_extended", False), ("addui_extended", False)]
)
@hypothesis.given(st.data())
@hypothesis.settings(max_examples=4, deadline=None)
def test_both_halves_of_a_wide_result_are_right(name: str, is_signed: bool, kind: str, data: Any) -> None:
    width, is_sum = WIDTHS[kind], name == "addui_extended"
    one, other = (data.draw(lists(width, is_signed=is_signed)) for _ in range(2))
    of_high = "i1" if is_sum else kind
    line = f"arith.{name} %a, %b : {kind}, i1" if is_sum else f"arith.{name} %a, %b : {kind}"
    lines = [(f"%r, %x = {line}", DTYPES[kind]), (f"%x, %r = {line}", DTYPES[of_high])]
    low, high = each_applied(lines, stored(one, kind), stored(other, kind))
    wholes = [a + b if is_sum else a * b for a, b in zip(one, other, strict=True)]
    assert list(low) == list(stored(wholes, kind))
    assert list(high) == list(stored([each >> width for each in wholes], of_high))


@pytest.mark.parametrize("name", DIVISIONS)
def test_a_division_by_zero_is_a_fault_that_names_its_lane(name: str) -> None:
    divisors = [1, 1, 0, 1]
    message = rf"kernel k: arith\.{name} at .*: found a division by zero in block .*, thread \(2, 0, 0\)"
    with pytest.raises(CandidateError, match=message) as caught:
        applied(
            f"%r = arith.{name} %a, %b : i32",
            np.int32,
            *(np.array(each, np.int32) for each in ([1] * 4, divisors)),
        )
    assert caught.value.stage is Stage.RUN


def test_a_division_by_zero_where_no_lane_runs_is_none() -> None:
    lines = text_beside(__file__, "GUARDED_DIVISION")
    a, b = np.array([7, 8, 9], np.int32), np.array([2, 0, -2], np.int32)
    assert applied(lines, np.int32, a, b).tolist() == [3, 0, -4]
