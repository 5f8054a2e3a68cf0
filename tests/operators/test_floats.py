"""Operators of floats against fractions that are rounded once, on both simulated machines."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.operators.machines import FLOATS as TYPES
from tests.operators.machines import Array, Interpreter, Machine, Ptx
from tests.operators.table import EXTREMES, FLOATS, ORDERINGS
from tests.simulator.ptx.snippets import rounded, same_bits

LANES = 24
KINDS = [
    pytest.param(machine, kind, id=f"{type(machine).__name__}-{kind}", marks=marks)
    for machine, marks in ((Interpreter(), [pytest.mark.mlir]), (Ptx(), []))
    for kind in machine.floats
]
PRECISIONS = {"f16": "f2", "bf16": "b2", "f32": "f4", "f64": "f8"}
SPECIAL = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan]
PAIRS = [*itertools.product(SPECIAL, SPECIAL)]


def stored(listed: Any, kind: str) -> Array:
    with np.errstate(over="ignore"):
        return np.array(listed).astype(TYPES[kind])


@pytest.mark.parametrize(("machine", "kind"), KINDS)
@given(data=st.data())
@settings(max_examples=8)
def test_results_are_rounded_once(machine: Machine, kind: str, data: Any) -> None:
    """Also where they are denormal, or too large."""
    some = st.lists(st.floats(width=32 if kind != "f64" else 64), min_size=LANES, max_size=LANES)
    a, b = (stored(data.draw(some), kind) for _ in range(2))
    operators = [each for each in FLOATS if each.name != "divf" or kind in ("f32", "f64")]
    for each, found in zip(operators, machine.results(operators, kind, a, b), strict=True):
        expected = stored(
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
    a, b = (stored(each, kind) for each in zip(*PAIRS, strict=True))
    for each, found in zip(EXTREMES, machine.results(EXTREMES, kind, a, b), strict=True):
        assert same_bits(found, stored([each.exact(*pair) for pair in PAIRS], kind)), each.name


@pytest.mark.parametrize(("machine", "kind"), KINDS)
def test_comparisons_say_what_they_do_with_nan(machine: Machine, kind: str) -> None:
    a, b = (stored(each, kind) for each in zip(*PAIRS, strict=True))
    operators = [each for each in ORDERINGS if machine.text(each)]
    for each, found in zip(operators, machine.results(operators, kind, a, b), strict=True):
        assert [bool(value) for value in found] == [each.exact(*pair) for pair in PAIRS], each.name
