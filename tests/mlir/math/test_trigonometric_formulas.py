"""Trigonometric functions of float64 on the simulated GPU, against long double."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.mlir.math.kernel_math import COUNT, EDGES, Array, computed, doubles, unary, worst_ulps

pytestmark = pytest.mark.mlir

ULPS = {"sin": 2.0, "cos": 2.0, "tan": 3.0, "arcsin": 3.0, "arccos": 3.0, "arctan": 2.0}  # what they say


@pytest.mark.parametrize("name", ULPS)
def test_a_function_of_f64_is_as_close_as_it_says(name: str) -> None:
    values = doubles()
    values = np.where(np.abs(values) < 2.0**52, values, 3.0)
    reference: Callable[..., Array] = getattr(np, name)
    found = unary(name.replace("arc", "a"), values, "f64")
    assert worst_ulps(found, reference, values) <= ULPS[name]
    assert name in ("cos", "arccos") or np.signbit(found[values == 0]).tolist() == [False, True]


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_what_has_no_quarter_turn_is_not_a_number(name: str) -> None:
    values = np.resize(np.array([2.0**52, -1e300, np.inf, np.nan]), 256)
    assert np.isnan(unary(name, values, "f64")).all()


def test_an_angle_has_the_quadrant_of_its_point() -> None:
    y, x = (grid.ravel().astype(np.float64) for grid in np.meshgrid(EDGES, EDGES))
    rng = np.random.default_rng(0)
    more = rng.normal(size=(2, COUNT - len(x))) * 10 ** rng.uniform(-5, 5, (2, COUNT - len(x)))
    y, x = np.concatenate([y, more[0]]), np.concatenate([x, more[1]])
    found = computed("%y = math.atan2 %x0, %x1 : f64", y, x, types=("f64", "f64"), result="f64")
    assert worst_ulps(found, np.arctan2, y, x) <= 3.0
    number = ~np.isnan(found)
    np.testing.assert_array_equal(np.signbit(found[number]), np.signbit(y[number]))
