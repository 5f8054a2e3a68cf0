"""Infinity, NaN and the largest numbers in A and B, and what a result of f32 is then."""

import numpy as np
import numpy.typing as npt

from tuner.core.dtypes import number_type

Floats = npt.NDArray[np.float32]
LARGEST = float(np.finfo(np.float32).max)
NUMBERS: dict[str, tuple[float, ...]] = {
    "infinity": (np.inf, -np.inf),
    "NaN": (np.nan,),
    "largest": (LARGEST, -LARGEST, 2.0**127),
    "mixed": (np.inf, -np.inf, np.nan, LARGEST, -LARGEST, 2.0**-149, 0.0),
}


def special_operands(kind: str, sizes: tuple[int, ...], rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Returns A and B with each of NUMBERS[kind] at two drawn places, one of them in the last row.

    ``sizes``: m, n, k.
    """
    m, n, k = sizes
    return _with_numbers((m, k), kind, rng), _with_numbers((k, n), kind, rng)


def _with_numbers(shape: tuple[int, int], kind: str, rng: np.random.Generator) -> Floats:
    matrix = rng.standard_normal(shape).astype(np.float32)
    for number in NUMBERS[kind]:
        matrix[rng.integers(shape[0]), rng.integers(shape[1])] = number
        matrix[-1, rng.integers(shape[1])] = number
    return matrix


def require_f32(c: Floats, a: Floats, b: Floats, expected: Floats) -> None:
    """Asserts the infinities and NaN of a result of f32, and other elements within the tolerance of f32."""
    np.testing.assert_array_equal(np.isnan(c), np.isnan(expected))
    np.testing.assert_array_equal(np.isposinf(c), np.isposinf(expected))
    np.testing.assert_array_equal(np.isneginf(c), np.isneginf(expected))
    is_number = np.isfinite(expected)
    norms = np.outer(np.linalg.norm(a.astype(float), axis=1), np.linalg.norm(b.astype(float), axis=0))
    off = np.abs(c[is_number].astype(float) - expected[is_number])
    assert (off <= 8 * number_type("f32").epsilon * norms[is_number]).all()
