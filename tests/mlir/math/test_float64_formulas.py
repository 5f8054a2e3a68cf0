"""Exponentials, logarithms and erf of float64 on the simulated GPU, against long double."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from tests.mlir.math.kernel_math import Array, doubles, unary, worst_ulps

pytestmark = pytest.mark.mlir

# What the formulas say of themselves.
ULPS = {
    **dict.fromkeys(("exp", "exp2", "log"), 1.0),
    **dict.fromkeys(("expm1", "log2", "log10", "log1p"), 2.0),
    "tanh": 3.0,
}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", ULPS)
def test_a_function_of_f64_is_as_close_as_it_says(name: str) -> None:
    values = doubles()
    reference: Callable[..., Array] = getattr(np, name)
    assert worst_ulps(unary(name, values, "f64"), reference, values) <= ULPS[name]


def test_erf_is_as_close_as_it_says() -> None:
    """math.erf of C's library may itself be off by one."""
    values = doubles()
    found = unary("erf", values, "f64")
    assert worst_ulps(found, np.vectorize(lambda x: math.erf(float(x))), values) <= 3.0
    assert not (np.signbit(found) != np.signbit(values))[~np.isnan(values)].any()
