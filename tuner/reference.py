"""Random inputs and the float64 answer, element by element, with a tolerance derived from dtype and K."""

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from tuner.problem import Problem
from tuner.record import Verdict

Array = npt.NDArray[Any]
NUMPY_DTYPES = {"f32": np.dtype(np.float32), "f64": np.dtype(np.float64), "bf16": np.dtype(ml_dtypes.bfloat16)}
# Rounding errors of a dot product of random terms stay below 4 u |a| |b| over millions of elements (measured
# for K = 64 .. 4096); a missing or doubled term is about |a| |b| / K. 16 leaves room on both sides to K = 1e5.
ERROR_FACTOR = 16.0


@dataclass(frozen=True)
class Inputs:
    """One draw of inputs as the kernel takes them, and what it must answer."""

    a: Array  # (m, k), or (k, m) in memory for layout tn
    b: Array  # (k, n), or (n, k) in memory for layout nt
    bias: Array | None  # (n,)
    expected: npt.NDArray[np.float64]  # (m, n)
    tolerance: npt.NDArray[np.float64]  # (m, n), absolute


@dataclass(frozen=True)
class Base:
    """A draw whose float64 product is known, from which fresh draws follow in O(mk + kn + mn)."""

    a: Array  # (m, k)
    b: Array  # (k, n)
    product: npt.NDArray[np.float64]  # (m, n), exact inputs multiplied in float64
    row_norm: npt.NDArray[np.float64]  # (m, 1)
    column_norm: npt.NDArray[np.float64]  # (1, n)


def output_dtype(problem: Problem) -> np.dtype[Any]:
    """Returns the type of C."""
    return np.dtype(np.float64 if problem.dtype == "f64" else np.float32)


def draw_base(problem: Problem, rng: np.random.Generator) -> Base:
    """Draws standard normal inputs, rounds them to the dtype and multiplies them in float64 once."""
    m, n, k = problem.sizes
    dtype = NUMPY_DTYPES[problem.dtype]
    a = rng.standard_normal((m, k), dtype=np.float32).astype(dtype)
    b = rng.standard_normal((k, n), dtype=np.float32).astype(dtype)
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    row_norm = np.linalg.norm(wide_a, axis=1, keepdims=True)
    column_norm = np.linalg.norm(wide_b, axis=0, keepdims=True)
    return Base(a, b, wide_a @ wide_b, row_norm, column_norm)


def draw(problem: Problem, base: Base, rng: np.random.Generator) -> Inputs:
    """Makes fresh inputs: rows of A and columns of B times a random power of two and sign, and rotated.

    Scaling by powers of two is exact in every dtype, so the expected answer stays exact without a new product.
    """
    m, n, _ = problem.sizes
    rows, columns = _factors(rng, m)[:, None], _factors(rng, n)[None, :]
    down, right = int(rng.integers(m)), int(rng.integers(n))
    a = np.roll(base.a, down, axis=0) * rows.astype(base.a.dtype)
    b = np.roll(base.b, right, axis=1) * columns.astype(base.b.dtype)
    expected = np.roll(base.product, (down, right), axis=(0, 1)) * rows * columns
    norms = np.roll(base.row_norm, down, axis=0) * np.abs(rows)
    tolerance = norms * (np.roll(base.column_norm, right, axis=1) * np.abs(columns)) * _unit(problem)
    bias = None
    if problem.epilogue == "bias_relu":
        bias = rng.standard_normal(n).astype(output_dtype(problem))
        tolerance += (np.abs(expected) + np.abs(bias)) * _unit(problem)
        expected = np.maximum(expected + bias, 0.0)
    stored_a = np.ascontiguousarray(a.T) if problem.layout == "tn" else a
    stored_b = np.ascontiguousarray(b.T) if problem.layout == "nt" else b
    return Inputs(stored_a, stored_b, bias, expected, tolerance)


def compare(inputs: Inputs, result: Array) -> tuple[Verdict, str]:
    """Compares every element; the text names the worst one. NaN and infinity count as wrong."""
    error = np.abs(result.astype(np.float64) - inputs.expected) / np.maximum(inputs.tolerance, 1e-300)
    error[~np.isfinite(error)] = np.inf
    worst = int(np.argmax(error))
    row, column = divmod(worst, error.shape[1])
    wrong = int(np.count_nonzero(error > 1.0))
    found, expected = result[row, column], inputs.expected[row, column]
    text = f"{wrong} of {error.size} elements are wrong; worst at [{row}, {column}]: found {found:.9g}, expected {expected:.9g}"
    return Verdict(float(error[row, column]), error.size), text


def reference_bytes(problem: Problem) -> int:
    """Returns the memory that drawing and comparing takes at its peak, roughly: inputs twice, C in float64 eight times."""
    m, n, k = problem.sizes
    return 2 * problem.bytes + 8 * 2 * (m * k + k * n) + 8 * 8 * m * n


def _factors(rng: np.random.Generator, count: int) -> npt.NDArray[np.float64]:
    factors: npt.NDArray[np.float64] = rng.choice(np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0]), size=count)
    return factors


def _unit(problem: Problem) -> float:
    return ERROR_FACTOR * float(np.finfo(output_dtype(problem)).eps) / 2
