"""Powers of float64 on the simulated GPU, against long double."""

import math

import numpy as np
import pytest

from tests.mlir.math.kernel_math import COUNT, computed, doubles, edges_first, exactly, ulps, unary
from tests.texts import filled
from tuner.mlir.math.float64 import TWO_OVER_PI


def test_a_power_is_as_close_as_it_says_and_has_the_edges_of_c99() -> None:
    rng, half = np.random.default_rng(0), COUNT // 2
    near = 1 + rng.uniform(-1e-3, 1e-3, half)  # whose powers have the largest exponents
    exponents = np.concatenate([rng.uniform(-25, 25, half), rng.uniform(-6e5, 6e5, half)])
    pairs = edges_first(np.concatenate([rng.lognormal(0, 9, half), near]), exponents)
    found = computed("%y = math.powf %x0, %x1 : f64", *pairs, types=("f64", "f64"), result="f64")
    assert ulps(found, exactly(np.power, *pairs)).max() <= 2.0


def test_erf_is_as_close_as_it_says() -> None:
    """math.erf of C's library may itself be off by one."""
    values = doubles()
    found = unary("erf", values, "f64")
    assert ulps(found, exactly(np.vectorize(math.erf), values)).max() <= 3.0


# What the formulas say of themselves.
ULPS = {
    **dict.fromkeys(("exp", "exp2", "log"), 1.0),
    **dict.fromkeys(("expm1", "log2", "log10", "log1p", "sin", "cos", "arctan"), 2.0),
    **dict.fromkeys(("tanh", "sinh", "cosh", "arcsinh", "arccosh", "arctanh"), 3.0),
    **dict.fromkeys(("tan", "arcsin", "arccos"), 3.0),
}
LARGE = (
    *(2.0**32, 2.0**53, 1e18, -1e30, 1e300, np.finfo(np.float64).max, -np.finfo(np.float32).max),
    *(6381956970095103 * 2.0**797, 5319372648326541 * 2.0**-1),  # the nearest to a multiple of pi / 2
)


@pytest.mark.drawn(6)
@pytest.mark.parametrize("name", ULPS)
def test_a_function_of_f64_is_as_close_as_it_says(name: str) -> None:
    values = doubles()
    found = unary(name.replace("arc", "a"), values, "f64")
    assert ulps(found, exactly(getattr(np, name), values)).max() <= ULPS[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_numbers_of_all_sizes_are_reduced_exactly(name: str) -> None:
    rng = np.random.default_rng(0)
    values = np.ldexp(rng.uniform(1, 2, COUNT) * rng.choice([-1, 1], COUNT), rng.integers(0, 1024, COUNT))
    near = np.round(2 ** rng.uniform(0, 52, COUNT // 2)) * (math.pi / 2)  # to multiples of pi / 2
    values[: COUNT // 2] = np.nextafter(near, rng.choice([-np.inf, 0, np.inf], COUNT // 2))
    values[: len(LARGE)] = LARGE
    assert ulps(unary(name, values, "f64"), exactly(getattr(np, name), values)).max() <= ULPS[name]


@pytest.mark.drawn(2)
@pytest.mark.parametrize("shape", ["2", "3x4", "1x2x2"])
def test_one_large_number_of_a_vector_leaves_the_others(shape: str) -> None:
    kind, last = f"vector<{shape}xf64>", ", ".join(str(int(size) - 1) for size in shape.split("x"))
    op = filled(__file__, "ONE_LARGE", kind=kind, last=last, first=", ".join("0" for _ in shape.split("x")))
    values = np.resize(np.array([1.0, 1e18, -1e300, 3.0]), 256)
    found = computed(op, values, types=("f64",), result="f64")
    np.testing.assert_allclose(found, np.sin(values) - np.sin(1.0), atol=1e-15)


def test_the_bits_of_the_table_are_those_of_two_over_pi() -> None:
    bits = 1300

    def arctangent(divisor: int) -> int:  # of 1 / divisor, in units of 2**-bits
        terms = ((1 << bits) // (divisor ** (2 * n + 1) * (2 * n + 1)) * (-1) ** n for n in range(600))
        return sum(terms)

    pi = 16 * arctangent(5) - 4 * arctangent(239)  # Machin
    assert (1 << bits + 1 + 1182) // pi == TWO_OVER_PI


def test_an_angle_has_the_quadrant_of_its_point() -> None:
    rng, shape = np.random.default_rng(0), (2, COUNT)
    pairs = edges_first(*rng.normal(size=shape) * 10 ** rng.uniform(-5, 5, shape))
    found = computed("%y = math.atan2 %x0, %x1 : f64", *pairs, types=("f64", "f64"), result="f64")
    assert ulps(found, exactly(np.arctan2, *pairs)).max() <= 3.0
