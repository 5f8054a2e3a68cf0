"""Hyperbolic functions of float64 on the simulated GPU, against long double."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.mlir.math.kernel_math import Array, doubles, unary, worst_ulps

pytestmark = pytest.mark.mlir

NAMES = ("sinh", "cosh", "arcsinh", "arccosh", "arctanh")


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", NAMES)
def test_a_function_of_f64_is_as_close_as_it_says(name: str) -> None:
    values = doubles()
    reference: Callable[..., Array] = getattr(np, name)
    found = unary(name.replace("arc", "a"), values, "f64")
    assert worst_ulps(found, reference, values) <= 3.0
