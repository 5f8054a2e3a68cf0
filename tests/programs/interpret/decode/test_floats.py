"""Floating-point arithmetic against exact fractions rounded once."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Literal

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.programs.interpret.lane_kernels import DTYPES, applied, each_applied

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


EXACT: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "addf": lambda a, b: a + b,
    "subf": lambda a, b: a - b,
    "mulf": lambda a, b: a * b,
    "divf": lambda a, b: a / b,
}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("kind", FORMATS)
@hypothesis.given(st.data())
@hypothesis.settings(max_examples=10, deadline=None)
def test_arithmetic_is_rounded_once(kind: str, data: Any) -> None:
    one, other = data.draw(floats(kind)), data.draw(floats(kind))
    divisor = np.where(np.abs(other.astype(float)) < 1e-2, 1.0, other.astype(float)).astype(other.dtype)
    seconds = {name: ("c", divisor) if name == "divf" else ("b", other) for name in EXACT}
    lines = [(f"%r = arith.{name} %a, %{each} : {kind}", DTYPES[kind]) for name, (each, _) in seconds.items()]
    for name, found in zip(EXACT, each_applied(lines, one, other, divisor), strict=True):
        for a, b, r in zip(one, seconds[name][1], found, strict=True):
            assert float(r) == nearest(EXACT[name](Fraction(float(a)), Fraction(float(b))), kind), name


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


SPECIAL = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan]
PAIRS = [(a, b) for a in SPECIAL for b in SPECIAL]


def extreme(a: float, b: float, *, is_max: bool, keeps_nan: bool) -> float:
    if math.isnan(a) or math.isnan(b):
        if keeps_nan or (math.isnan(a) and math.isnan(b)):
            return math.nan
        return b if math.isnan(a) else a
    ordered = sorted([a, b], key=lambda each: (each, math.copysign(1, each)))
    return ordered[-1 if is_max else 0]


@pytest.mark.parametrize("kind", FORMATS)
def test_minimum_and_maximum_treat_nan_and_zeros_as_they_say(kind: str) -> None:
    one, other = (np.array(each).astype(DTYPES[kind]) for each in zip(*PAIRS, strict=True))
    names = ("maximumf", "minimumf", "maxnumf", "minnumf")
    lines = [(f"%r = arith.{name} %a, %b : {kind}", DTYPES[kind]) for name in names]
    for name, result in zip(names, each_applied(lines, one, other), strict=True):
        found = result.astype(float)
        wanted = [extreme(a, b, is_max="max" in name, keeps_nan="num" not in name) for a, b in PAIRS]
        np.testing.assert_array_equal(found, wanted, name)
        numbers = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(wanted)[numbers], name)


ORDERED: dict[str, Callable[[float, float], bool]] = {
    "eq": lambda a, b: a == b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "ne": lambda a, b: a < b or a > b,
}


WORDS = [*(f"{letter}{name}" for letter in "ou" for name in ORDERED), "ord", "uno", "false", "true"]


@pytest.mark.parametrize("kind", FORMATS)
def test_comparisons_say_what_they_do_with_nan(kind: str) -> None:
    one, other = (np.array(each).astype(DTYPES[kind]) for each in zip(*PAIRS, strict=True))
    lines = [(f"%r = arith.cmpf {text}, %a, %b : {kind}", bool) for text in WORDS]
    for text, found in zip(WORDS, each_applied(lines, one, other), strict=True):
        assert found.tolist() == [holds(text, a, b) for a, b in PAIRS], text


def holds(text: str, a: float, b: float) -> bool:
    is_unordered = math.isnan(a) or math.isnan(b)
    fixed = {"ord": not is_unordered, "uno": is_unordered, "false": False, "true": True}
    if text in fixed:
        return fixed[text]
    return ORDERED[text[1:]](a, b) or (text[0] == "u" and is_unordered)


@pytest.mark.parametrize("kind", FORMATS)
def test_a_remainder_has_the_sign_of_the_dividend_and_a_negation_changes_that_of_zero(kind: str) -> None:
    one, other = (np.array(each).astype(DTYPES[kind]) for each in ([7.5, -7.5, 7.5, -0.0], [2, 2, -2, 1]))
    found = applied(f"%r = arith.remf %a, %b : {kind}", DTYPES[kind], one, other).astype(float)
    np.testing.assert_array_equal(found, [1.5, -1.5, 1.5, -0.0])
    negated = applied(f"%r = arith.negf %a : {kind}", DTYPES[kind], one).astype(float)
    np.testing.assert_array_equal(negated, [-7.5, 7.5, -7.5, 0.0])
    assert np.signbit(negated).tolist() == [True, False, True, False]
