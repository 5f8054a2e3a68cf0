"""Integer arithmetic against Python's integers."""

from collections.abc import Callable
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.programs.interpret.lane_kernels import DTYPES, applied, each_applied
from tuner.core.errors import CandidateError, Stage

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.programs.interpret.decode.integers")

WIDTHS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64}
LANES = 24
COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
# Of numbers read as signed, and as unsigned.
SIGNED: dict[str, Callable[[int, int], int]] = {
    "addi": lambda a, b: a + b,
    "subi": lambda a, b: a - b,
    "muli": lambda a, b: a * b,
    "andi": lambda a, b: a & b,
    "ori": lambda a, b: a | b,
    "xori": lambda a, b: a ^ b,
    "maxsi": max,
    "minsi": min,
}
UNSIGNED: dict[str, Callable[[int, int], int]] = {"maxui": max, "minui": min}
SIGNED_DIVISIONS: dict[str, Callable[[int, int], int]] = {
    "divsi": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "floordivsi": lambda a, b: a // b,
    "ceildivsi": lambda a, b: -(-a // b),
    "remsi": lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1),
}
UNSIGNED_DIVISIONS: dict[str, Callable[[int, int], int]] = {
    "divui": lambda a, b: a // b,
    "ceildivui": lambda a, b: -(-a // b),
    "remui": lambda a, b: a % b,
}


def lists(width: int, *, is_signed: bool = True, least: int | None = None) -> Any:
    """Draws numbers of a width, the ends of its range among them."""
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if is_signed else (0, (1 << width) - 1)
    low = low if least is None else least
    one = st.integers(low, high) | st.sampled_from([low, high, max(low, min(0, high))])
    return st.lists(one, min_size=LANES, max_size=LANES)


def stored(numbers: list[int], kind: str) -> Any:
    """Returns the bits of numbers as an array of a signless type."""
    width = WIDTHS[kind]
    if width == 1:
        return np.array([number & 1 for number in numbers]).astype(bool)
    half = 1 << (width - 1)
    return np.array([(number + half) % (2 * half) - half for number in numbers], DTYPES[kind])


def compute(name: str, kind: str, one: list[int], other: list[int]) -> list[int]:
    line = f"%r = arith.{name} %a, %b : {kind}"
    return list(applied(line, DTYPES[kind], stored(one, kind), stored(other, kind)))


def expected(function: Callable[[int, int], int], kind: str, one: list[int], other: list[int]) -> list[int]:
    return list(stored([function(a, b) for a, b in zip(one, other, strict=True)], kind))


def require(
    functions: dict[str, Callable[[int, int], int]], kind: str, one: list[int], other: list[int]
) -> None:
    lines = [(f"%r = arith.{name} %a, %b : {kind}", DTYPES[kind]) for name in functions]
    found = each_applied(lines, stored(one, kind), stored(other, kind))
    for (name, function), result in zip(functions.items(), found, strict=True):
        assert list(result) == expected(function, kind, one, other), name


@pytest.mark.drawn(2)
@pytest.mark.parametrize("kind", WIDTHS)
@hypothesis.given(st.data())
@hypothesis.settings(max_examples=10, deadline=None)
def test_arithmetic_wraps_around_as_pythons_integers_cut_to_the_width(kind: str, data: Any) -> None:
    for functions, is_signed in ((SIGNED, True), (UNSIGNED, False)):
        one, other = (data.draw(lists(WIDTHS[kind], is_signed=is_signed)) for _ in range(2))
        require(functions, kind, one, other)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("kind", ["i8", "i16", "i32", "i64"])
@hypothesis.given(st.data())
@hypothesis.settings(max_examples=10, deadline=None)
def test_divisions_round_as_pythons(kind: str, data: Any) -> None:
    for functions, is_signed in ((SIGNED_DIVISIONS, True), (UNSIGNED_DIVISIONS, False)):
        one, divisors = (data.draw(lists(WIDTHS[kind], is_signed=is_signed)) for _ in range(2))
        require(functions, kind, one, [divisor if divisor not in (0, -1) else 3 for divisor in divisors])


@pytest.mark.drawn(2)
@pytest.mark.parametrize("kind", ["i8", "i16", "i32", "i64"])
@hypothesis.given(st.data())
@hypothesis.settings(max_examples=5, deadline=None)
def test_shifts_are_those_of_pythons_integers(kind: str, data: Any) -> None:
    width = WIDTHS[kind]
    by = data.draw(st.lists(st.integers(0, width - 1), min_size=LANES, max_size=LANES))
    one = data.draw(lists(width))
    unsigned = [number % (1 << width) for number in one]
    assert compute("shli", kind, one, by) == expected(lambda a, b: a << b, kind, one, by)
    assert compute("shrsi", kind, one, by) == expected(lambda a, b: a >> b, kind, one, by)
    assert compute("shrui", kind, one, by) == expected(lambda a, b: a >> b, kind, unsigned, by)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("kind", WIDTHS)
@pytest.mark.parametrize("sign", ["s", "u"])
@hypothesis.given(st.data())
@hypothesis.settings(max_examples=10, deadline=None)
def test_comparisons_read_numbers_as_they_say(sign: str, kind: str, data: Any) -> None:
    options = [name if name in ("eq", "ne") else sign + name for name in COMPARISONS]
    one, other = (data.draw(lists(WIDTHS[kind], is_signed=sign == "s")) for _ in range(2))
    lines = [(f"%r = arith.cmpi {text}, %a, %b : {kind}", bool) for text in options]
    found = each_applied(lines, stored(one, kind), stored(other, kind))
    for name, result in zip(COMPARISONS, found, strict=True):
        assert list(result) == [COMPARISONS[name](a, b) for a, b in zip(one, other, strict=True)], name


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


@pytest.mark.parametrize("name", [*SIGNED_DIVISIONS, *UNSIGNED_DIVISIONS])
def test_a_division_by_zero_is_a_fault_that_names_its_lane(name: str) -> None:
    divisors = [1, 1, 0, 1]
    message = rf"kernel k: arith\.{name} at .*: found a division by zero in block .*, thread \(2, 0, 0\)"
    with pytest.raises(CandidateError, match=message) as caught:
        compute(name, "i32", [1] * 4, divisors)
    assert caught.value.stage is Stage.RUN


def test_a_division_by_zero_where_no_lane_runs_is_none() -> None:
    lines = """%z = arith.constant 0 : i32
      %p = arith.cmpi ne, %b, %z : i32
      %r = scf.if %p -> i32 {
        %q = arith.divsi %a, %b : i32
        scf.yield %q : i32
      } else { scf.yield %z : i32 }"""
    a, b = np.array([7, 8, 9], np.int32), np.array([2, 0, -2], np.int32)
    assert applied(lines, np.int32, a, b).tolist() == [3, 0, -4]
