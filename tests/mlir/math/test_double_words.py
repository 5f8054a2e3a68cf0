"""Powers of float64 on the simulated GPU, against long double."""

import numpy as np
import pytest

from tests.mlir.math.kernel_math import COUNT, EDGES, computed, worst_ulps

pytestmark = pytest.mark.mlir


def test_a_power_is_as_close_as_it_says_and_has_the_edges_of_c99() -> None:
    base, exponent = (grid.ravel().astype(np.float64) for grid in np.meshgrid(EDGES, EDGES))
    rng = np.random.default_rng(0)
    size = COUNT - len(base)
    near = 1 + rng.uniform(-1e-3, 1e-3, size // 2)  # whose powers have the largest exponents
    base = np.concatenate([base, rng.lognormal(0, 9, size - size // 2), near])
    far = rng.uniform(-6e5, 6e5, size // 2)
    exponent = np.concatenate([exponent, rng.uniform(-25, 25, size - size // 2), far])
    found = computed("%y = math.powf %x0, %x1 : f64", base, exponent, types=("f64", "f64"), result="f64")
    assert worst_ulps(found, np.power, base, exponent) <= 2.0
