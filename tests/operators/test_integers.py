"""Operators of integers against Python's integers, on both simulated machines."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.operators.machines import Array, Interpreter, Machine, Ptx
from tests.operators.table import DIVISIONS, INTEGERS, SHIFTS, Operator

LANES = 24
TYPES = [
    pytest.param(machine, sign, bits, id=f"{type(machine).__name__}-{sign}{bits}", marks=marks)
    for machine, marks in ((Interpreter(), [pytest.mark.mlir]), (Ptx(), []))
    for bits in machine.integers
    for sign in "su"
]

WIDE = [each for each in TYPES if each.values[2] != 1]


def numbers(sign: str, bits: int) -> st.SearchStrategy[list[int]]:
    """Draws numbers of a type, the ends of its range among them."""
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if sign == "s" else (0, (1 << bits) - 1)
    one = st.integers(low, high) | st.sampled_from([low, high, 0 if bits > 1 else low])
    return st.lists(one, min_size=LANES, max_size=LANES)


def stored(listed: list[int], sign: str, bits: int) -> Array:
    """Returns numbers as an array of their type; of one bit as truths."""
    if bits == 1:
        return np.array([each & 1 for each in listed], bool)
    return np.array(listed, f"{'i' if sign == 's' else 'u'}{bits // 8}")


def require(
    machine: Machine, operators: tuple[Operator, ...], sign: str, bits: int, one: list[int], other: list[int]
) -> None:
    of_sign = [each for each in operators if sign in each.sign and machine.text(each)]
    arrays = stored(one, sign, bits), stored(other, sign, bits)
    for each, found in zip(of_sign, machine.results(of_sign, f"{sign}{bits}", *arrays), strict=True):
        expected = [int(each.exact(a, b)) % (1 << bits) for a, b in zip(one, other, strict=True)]
        assert [int(value) % (1 << bits) for value in found] == expected, each.name


@pytest.mark.parametrize(("machine", "sign", "bits"), TYPES)
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
