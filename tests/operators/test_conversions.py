"""Conversions of numbers against Python's integers and fractions, on both simulated machines."""

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
from tests.simulator.ptx.snippets import lanes_of, rounded, same_bits

MACHINES: tuple[tuple[Machine, list[pytest.MarkDecorator]], ...] = (
    (Interpreter(), [pytest.mark.mlir]),
    (Ptx(), []),
)
INTEGERS = [
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
PRECISIONS = {"f16": "f2", "bf16": "b2", "f32": "f4", "f64": "f8"}


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


@pytest.mark.parametrize(("machine", "source"), INTEGERS)
@settings(max_examples=2)
@given(data=st.data())
def test_integers_are_cut_or_extended_by_their_sign(machine: Machine, source: str, data: Any) -> None:
    numbers, a = drawn(data, source)
    same = {int(source[1:])} if isinstance(machine, Interpreter) else set()  # bits without a sign stay
    for bits in {*machine.integers, 8} - same:
        for target in (f"s{bits}", f"u{bits}"):
            found = machine.converted(source, target, a)
            assert [wrapped(int(value), target) for value in found] == [wrapped(n, target) for n in numbers]


@pytest.mark.parametrize(("machine", "source"), INTEGERS)
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
def test_floats_become_whole_clamped_and_nan_zero(
    machine: Machine, mode: str, source: str, data: Any
) -> None:
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
