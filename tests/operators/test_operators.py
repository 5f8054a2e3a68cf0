"""Operators and conversions against Python's integers and fractions, on both simulated machines."""

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.operators.machines import FLOATS, Array, Interpreter, Machine, Ptx
from tests.operators.table import DIVISIONS, EXTREMES, INTEGERS, ORDERINGS, SHIFTS, Operator
from tests.operators.table import FLOATS as FLOAT_OPERATORS
from tests.simulator.ptx.snippets import lanes_of, rounded, same_bits

# Operators of integers.
MACHINES: tuple[tuple[Machine, list[pytest.MarkDecorator]], ...] = (
    (Interpreter(), [pytest.mark.mlir]),
    (Ptx(), []),
)
LANES = 24
INTEGER_TYPES = [
    pytest.param(machine, sign, bits, id=f"{type(machine).__name__}-{sign}{bits}", marks=marks)
    for machine, marks in MACHINES
    for bits in machine.integers
    for sign in "su"
]
WIDE = [each for each in INTEGER_TYPES if each.values[2] != 1]


def numbers(sign: str, bits: int) -> st.SearchStrategy[list[int]]:
    """Draws numbers of a type, the ends of its range among them."""
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if sign == "s" else (0, (1 << bits) - 1)
    one = st.integers(low, high) | st.sampled_from([low, high, 0 if bits > 1 else low])
    return st.lists(one, min_size=LANES, max_size=LANES)


def stored_integers(listed: list[int], sign: str, bits: int) -> Array:
    """Returns numbers as an array of their type; of one bit as truths."""
    if bits == 1:
        return np.array([each & 1 for each in listed], bool)
    return np.array(listed, f"{'i' if sign == 's' else 'u'}{bits // 8}")


def require(
    machine: Machine, operators: tuple[Operator, ...], sign: str, bits: int, one: list[int], other: list[int]
) -> None:
    of_sign = [each for each in operators if sign in each.sign and machine.text(each)]
    arrays = stored_integers(one, sign, bits), stored_integers(other, sign, bits)
    for each, found in zip(of_sign, machine.results(of_sign, f"{sign}{bits}", *arrays), strict=True):
        expected = [int(each.exact(a, b)) % (1 << bits) for a, b in zip(one, other, strict=True)]
        assert [int(value) % (1 << bits) for value in found] == expected, each.name


@pytest.mark.parametrize(("machine", "sign", "bits"), INTEGER_TYPES)
@given(data=st.data())
@settings(max_examples=6)
def test_results_are_exact_and_cut_to_the_width(machine: Machine, sign: str, bits: int, data: Any) -> None:
    one, other = (data.draw(numbers(sign, bits)) for _ in range(2))
    other[::3] = one[::3]
    require(machine, INTEGERS, sign, bits, one, other)


@pytest.mark.parametrize(("machine", "sign", "bits"), WIDE)
@given(data=st.data())
@settings(max_examples=6)
def test_divisions_are_those_of_python(machine: Machine, sign: str, bits: int, data: Any) -> None:
    one, divisors = (data.draw(numbers(sign, bits)) for _ in range(2))
    require(machine, DIVISIONS, sign, bits, one, [each if each not in (0, -1) else 3 for each in divisors])


@pytest.mark.parametrize(("machine", "sign", "bits"), WIDE)
@given(data=st.data())
@settings(max_examples=4)
def test_shifts_are_those_of_python(machine: Machine, sign: str, bits: int, data: Any) -> None:
    by = data.draw(st.lists(st.integers(0, bits - 1), min_size=LANES, max_size=LANES))
    require(machine, SHIFTS, sign, bits, data.draw(numbers(sign, bits)), by)


# Operators of floats against fractions that are rounded once.
KINDS = [
    pytest.param(machine, kind, id=f"{type(machine).__name__}-{kind}", marks=marks)
    for machine, marks in MACHINES
    for kind in machine.floats
]
PRECISIONS = {"f16": "f2", "bf16": "b2", "f32": "f4", "f64": "f8"}
SPECIAL = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan]
PAIRS = [*itertools.product(SPECIAL, SPECIAL)]


def stored_floats(listed: Any, kind: str) -> Array:
    with np.errstate(over="ignore"):
        return np.array(listed).astype(FLOATS[kind])


@pytest.mark.parametrize(("machine", "kind"), KINDS)
@given(data=st.data())
@settings(max_examples=8)
def test_results_are_rounded_once(machine: Machine, kind: str, data: Any) -> None:
    """Also where they are denormal, or too large."""
    some = st.lists(st.floats(width=32 if kind != "f64" else 64), min_size=LANES, max_size=LANES)
    a, b = (stored_floats(data.draw(some), kind) for _ in range(2))
    operators = [each for each in FLOAT_OPERATORS if each.name != "divf" or kind in ("f32", "f64")]
    for each, found in zip(operators, machine.results(operators, kind, a, b), strict=True):
        expected = stored_floats(
            [result(each.exact, float(x), float(y), kind) for x, y in zip(a, b, strict=True)], kind
        )
        assert same_bits(found, expected), each.name


def result(exact: Any, a: float, b: float, kind: str) -> float:
    """Returns a result rounded once; where an operand or the result is no number but 0, that of float64."""
    if math.isfinite(a) and math.isfinite(b) and b and (found := exact(Fraction(a), Fraction(b))):
        return rounded(found, PRECISIONS[kind])
    with np.errstate(all="ignore"):
        return float(exact(np.float64(a), np.float64(b)))


@pytest.mark.parametrize(("machine", "kind"), KINDS)
def test_the_larger_and_the_smaller_treat_nan_and_zeros_as_they_say(machine: Machine, kind: str) -> None:
    a, b = (stored_floats(each, kind) for each in zip(*PAIRS, strict=True))
    for each, found in zip(EXTREMES, machine.results(EXTREMES, kind, a, b), strict=True):
        assert same_bits(found, stored_floats([each.exact(*pair) for pair in PAIRS], kind)), each.name


@pytest.mark.parametrize(("machine", "kind"), KINDS)
def test_comparisons_say_what_they_do_with_nan(machine: Machine, kind: str) -> None:
    a, b = (stored_floats(each, kind) for each in zip(*PAIRS, strict=True))
    operators = [each for each in ORDERINGS if machine.text(each)]
    for each, found in zip(operators, machine.results(operators, kind, a, b), strict=True):
        assert [bool(value) for value in found] == [each.exact(*pair) for pair in PAIRS], each.name


# Conversions.
INTEGER_SOURCES = [
    pytest.param(machine, f"{sign}{bits}", id=f"{type(machine).__name__}-{sign}{bits}", marks=marks)
    for machine, marks in MACHINES
    for bits in sorted({*machine.integers, 8})
    for sign in "su"
]
WHOLE: dict[str, Callable[[Fraction], int]] = {
    "rzi": int,
    "rni": round,
    "rmi": lambda x: x.__floor__(),
    "rpi": lambda x: x.__ceil__(),
}
CUTS = [
    pytest.param(machine, mode, source, id=f"{type(machine).__name__}-{mode}-{source}", marks=marks)
    for machine, marks in MACHINES
    for mode in WHOLE
    for source in ("f16", "f32", "f64")
    if mode in machine.roundings
]
WIDENINGS = [("f16", "f32"), ("f16", "f64"), ("f32", "f64"), ("bf16", "f32")]
TIES = [1 + 2.0**-8, 1 + 3 * 2.0**-8, 1 + 2.0**-11, 1 + 3 * 2.0**-11]  # of bf16 and of f16


def limits(kind: str) -> tuple[int, int]:
    bits = int(kind[1:])
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if kind[0] == "s" else (0, (1 << bits) - 1)


def wrapped(value: int, kind: str) -> int:
    """Returns what the low bits of a number are as one of a type."""
    low, _ = limits(kind)
    return (value - low) % (1 << int(kind[1:])) + low


def drawn(data: Any, kind: str) -> tuple[list[int], Array]:
    """Draws numbers of a type, and as an array; of one bit as truths."""
    low, high = limits(kind)
    one = st.integers(low, high) | st.sampled_from([low, high, high // 2])
    listed = data.draw(st.lists(one, min_size=24, max_size=24))
    name = "?" if kind[1:] == "1" else f"{'i' if kind[0] == 's' else 'u'}{int(kind[1:]) // 8}"
    return listed, np.array(listed, name)


@pytest.mark.parametrize(("machine", "source"), INTEGER_SOURCES)
@settings(max_examples=2)
@given(data=st.data())
def test_integers_are_cut_or_extended_by_their_sign(machine: Machine, source: str, data: Any) -> None:
    numbers, a = drawn(data, source)
    same = {int(source[1:])} if isinstance(machine, Interpreter) else set()  # bits without a sign stay
    for bits in {*machine.integers, 8} - same:
        for target in (f"s{bits}", f"u{bits}"):
            found = machine.converted(source, target, a)
            assert [wrapped(int(value), target) for value in found] == [wrapped(n, target) for n in numbers]


@pytest.mark.parametrize(("machine", "source"), INTEGER_SOURCES)
@settings(max_examples=3)
@given(data=st.data())
def test_integers_become_floats_rounded_once(machine: Machine, source: str, data: Any) -> None:
    numbers, a = drawn(data, source)
    for target in ("f16", "f32", "f64"):
        expected = np.array([rounded(Fraction(n), PRECISIONS[target]) for n in numbers], FLOATS[target])
        assert same_bits(machine.converted(source, target, a), expected), target


@pytest.mark.parametrize(("machine", "mode", "source"), CUTS)
@settings(max_examples=2)
@given(data=st.data())
def test_floats_become_whole_clamped_nan_zero(machine: Machine, mode: str, source: str, data: Any) -> None:
    a = data.draw(lanes_of(PRECISIONS[source]))
    a[1::3] = np.linspace(-60000, 60000, len(a[1::3])).astype(a.dtype)
    for target in [f"{sign}{bits}" for bits in machine.integers if bits > 1 for sign in "su"]:
        (low, high), found = limits(target), machine.converted(source, target, a, mode)
        for value, result in zip(a.tolist(), found.tolist(), strict=True):
            if math.isnan(value):
                assert result == 0
            elif math.isinf(value):
                assert wrapped(result, target) == (high if value > 0 else low)
            else:
                assert wrapped(result, target) == min(max(WHOLE[mode](Fraction(value)), low), high)


@pytest.mark.parametrize(
    "machine", [pytest.param(each, id=type(each).__name__, marks=marks) for each, marks in MACHINES]
)
@settings(max_examples=6)
@given(data=st.data())
def test_floats_become_wider_exactly_and_narrower_rounded_once(machine: Machine, data: Any) -> None:
    a, b, halves = (data.draw(lanes_of(kind)) for kind in ("f8", "f4", "u2"))
    b[-4:] = TIES
    patterns = {"f16": halves.view(np.float16), "bf16": halves.view(ml_dtypes.bfloat16), "f32": b}
    with np.errstate(all="ignore"):
        a[::2] = b[::2].astype(np.float64) * (1 + 2.0**-24 + 2.0**-40)
        for narrow, wide in WIDENINGS:
            values = {"f64": a, "f32": b}[wide]
            expected = values.astype(FLOATS[narrow])
            finite = np.isfinite(values) & (values != 0)
            expected[finite] = [
                rounded(Fraction(float(value)), PRECISIONS[narrow]) for value in values[finite]
            ]
            assert same_bits(machine.converted(wide, narrow, values), expected), narrow
            exact = patterns[narrow].astype(FLOATS[wide])
            assert same_bits(machine.converted(narrow, wide, patterns[narrow]), exact), wide
