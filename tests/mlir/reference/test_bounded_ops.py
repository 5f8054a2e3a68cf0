"""Errors of operations on numbers that are known only in part: divisors and operands near zero."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as draw

from tuner.mlir.reference.bounded_ops import Bounded, add, divide, multiply, square_root

pytestmark = pytest.mark.mlir
SMALLEST_ROUNDING = 2.0**-24


def bounded(value: float, error: float) -> Bounded:
    return Bounded(np.array(value), np.array(error), "f32")


def test_any_number_is_right_where_a_divisor_may_be_zero() -> None:
    quotient = divide(bounded(1.0, 0.0), bounded(1e-10, 1e-9))
    assert quotient.error == np.inf
    assert add(quotient, bounded(2.0, 0.0)).error == np.inf
    assert multiply(bounded(2.0, 0.0), quotient).error == np.inf


def test_the_error_of_what_is_infinite_stays_zero() -> None:
    assert divide(bounded(1.0, 0.0), bounded(0.0, 1e-9)).error == 0.0


@example(value=1.0, error=1.0, part=-1.0)
@example(value=0.0, error=0.5, part=1.0)
@given(draw.floats(0.0, 1e3), draw.floats(0.0, 1.0), draw.floats(-1.0, 1.0))
def test_a_root_is_within_its_error(value: float, error: float, part: float) -> None:
    root = square_root(bounded(value, error))
    taken = np.sqrt(max(value + part * error, 0.0))
    assert abs(taken - root.value) <= root.error
    assert root.error <= np.sqrt(error) + SMALLEST_ROUNDING * root.value + 1e-44


def test_the_root_of_an_exact_zero_is_exact() -> None:
    root = square_root(bounded(0.0, 0.0))
    assert root.value == 0.0
    assert root.error < 1e-44
