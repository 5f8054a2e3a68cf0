"""Errors of operations on numbers that are known only in part: divisors and operands near zero, overflow."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as draw

from tuner.core.bounded import FUNCTIONS, Bounded, apply
from tuner.core.dtypes import number_type
from tuner.core.errors import UsageError

SMALLEST_ROUNDING = 2.0**-24
LESS, LESS_OR_NAN = 4, 11  # predicates of arith.cmpf: olt, ult


def bounded(value: float, error: float, element: str = "f32") -> Bounded:
    return Bounded(np.array(value), np.array(error), element)


def of_floats(name: str, *operands: Bounded) -> Bounded:
    return apply(name, operands, operands[0].element)


def test_any_number_is_right_where_a_divisor_may_be_zero() -> None:
    quotient = of_floats("arith.divf", bounded(1.0, 0.0), bounded(1e-10, 1e-9))
    assert quotient.error == np.inf
    assert of_floats("arith.addf", quotient, bounded(2.0, 0.0)).error == np.inf
    assert of_floats("arith.mulf", bounded(2.0, 0.0), quotient).error == np.inf


def test_the_error_of_what_is_infinite_stays_zero() -> None:
    assert of_floats("arith.divf", bounded(1.0, 0.0), bounded(0.0, 1e-9)).error == 0.0
    beyond = of_floats("arith.mulf", bounded(1e30, 1e20), bounded(-1e30, 0.0))
    assert beyond.value == -np.inf
    assert beyond.error == 0.0


@pytest.mark.parametrize("x", [88.0, 88.7228, 88.73, 100.0])  # exp(88.7229) is too large for f32
def test_a_divisor_that_overflows_gives_zero_and_one_that_hardly_does_not_is_right_too(x: float) -> None:
    below = of_floats("arith.addf", of_floats("math.exp", bounded(x, 1e-3)), bounded(1.0, 0.0))
    quotient = of_floats("arith.divf", bounded(-x, 0.0), below)
    for power in (x - 1e-3, x, x + 1e-3):
        assert abs(-x / (1 + np.exp(power)) - quotient.value) <= quotient.error
    if x > 88.5:
        assert abs(quotient.value) <= quotient.error  # of a kernel whose divisor is infinite
        assert quotient.error < number_type("f32").format.smallest_normal * 32  # type: ignore[union-attr]


@example(value=1.0, error=1.0, part=-1.0)
@example(value=0.0, error=0.5, part=1.0)
@given(draw.floats(0.0, 1e3), draw.floats(0.0, 1.0), draw.floats(-1.0, 1.0))
def test_a_root_is_within_its_error(value: float, error: float, part: float) -> None:
    root = of_floats("math.sqrt", bounded(value, error))
    taken = np.sqrt(max(value + part * error, 0.0))
    assert abs(taken - root.value) <= root.error
    assert root.error <= np.sqrt(error) + SMALLEST_ROUNDING * root.value + 1e-44


def test_the_root_of_an_exact_zero_is_exact() -> None:
    root = of_floats("math.sqrt", bounded(0.0, 0.0))
    assert root.value == 0.0
    assert root.error < 1e-44


def test_a_rounding_to_f64_is_also_the_references_own() -> None:
    single = of_floats("arith.addf", bounded(1.0, 0.0), bounded(1.0, 0.0))
    double = of_floats("arith.addf", bounded(1.0, 0.0, "f64"), bounded(1.0, 0.0, "f64"))
    assert single.error == pytest.approx(2 * 2.0**-24)
    assert double.error == pytest.approx(2 * 2 * 2.0**-53)


def test_a_comparison_that_errors_may_invert_is_in_doubt_and_so_is_what_is_made_of_it() -> None:
    near = Bounded(np.array([1.0, 1.0, np.nan]), np.array([1e-7, 0.0, 0.0]), "f32")
    one = bounded(1.0 + 5e-8, 0.0)
    less = apply("arith.cmpf", (near, one), "i1", LESS)
    np.testing.assert_array_equal(less.value, [1.0, 1.0, 0.0])
    np.testing.assert_array_equal(less.error, [1.0, 0.0, 0.0])
    np.testing.assert_array_equal(apply("arith.cmpf", (near, one), "i1", LESS_OR_NAN).value, 1.0)
    exact = Bounded.exact([1.0, 1.0, 1.0], "i1")
    np.testing.assert_array_equal(apply("arith.andi", (less, exact), "i1").error, [1.0, 0.0, 0.0])
    np.testing.assert_array_equal(apply("arith.uitofp", (less,), "f32").error, [1.0, 0.0, 0.0])
    chosen = apply("arith.select", (less, bounded(3.0, 0.0), bounded(5.0, 0.0)), "f32")
    np.testing.assert_array_equal(chosen.error, [2.0, 0.0, 0.0])


def test_an_op_without_an_evaluation_is_refused_with_those_that_have_one() -> None:
    with pytest.raises(UsageError, match=r"^fusion: found math\.cbrt, allowed arith\.addf, .*math\.trunc$"):
        apply("math.cbrt", (bounded(1.0, 0.0),), "f32")
    with pytest.raises(UsageError, match=r"^fusion: found arith\.addi of i1, allowed arith\.andi, "):
        apply("arith.addi", (bounded(1.0, 0.0, "i1"), bounded(1.0, 0.0, "i1")), "i1")
    assert "math.cbrt" not in FUNCTIONS


def test_erf_is_that_of_the_math_module_to_two_units_in_the_last_place() -> None:
    near = 10.0 ** np.linspace(-300, 0, 999)
    numbers = np.concatenate((np.linspace(-7.0, 7.0, 40001), near, -near, [np.inf, -np.inf]))
    found = of_floats("math.erf", Bounded.exact(numbers, "f64")).value
    expected = np.array(list(map(math.erf, numbers.tolist())))
    assert (np.abs(found - expected) <= 2 * np.spacing(np.abs(expected))).all()
    assert np.isnan(of_floats("math.erf", bounded(np.nan, 0.0)).value)
