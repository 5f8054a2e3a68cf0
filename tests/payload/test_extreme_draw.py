import numpy as np
import pytest

from tuner.core.numpy_types import widened
from tuner.core.problem import INPUT_DTYPES, LAYOUTS, Problem
from tuner.payload.inputs import draw_extremes
from tuner.payload.reference import NUMPY_DTYPES, Array, compare


def multiplied(a: Array, b: Array, dtype: str) -> Array:
    """Adds up term by term in the type of the sums."""
    total = np.zeros((a.shape[0], b.shape[1]), NUMPY_DTYPES[dtype])
    for term in range(a.shape[1]):
        total += a[:, term, None].astype(total.dtype) * b[term].astype(total.dtype)
    return total


@pytest.mark.parametrize("dtype", INPUT_DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_right_answer_is_right_and_finite(dtype: str, layout: str) -> None:
    problem = Problem("matmul", (20, 25, 33), dtype, layout)
    for seed in range(5):
        inputs = draw_extremes(problem, np.random.default_rng(seed))
        a = widened(inputs.a.T if layout == "tn" else inputs.a)
        b = widened(inputs.b.T if layout == "nt" else inputs.b)
        result = multiplied(a, b, problem.accumulator)
        assert np.isfinite(result).all()
        assert compare(inputs, result)[0].max_error <= 0.5


def test_there_are_rows_of_each_kind() -> None:
    problem = Problem("matmul", (5, 5, 64), "f32", "nn")
    a = draw_extremes(problem, np.random.default_rng(0)).a
    sizes = np.abs(a)
    assert any((row > 0).all() for row in a)
    zeros = a[sizes == 0]
    assert np.signbit(zeros).any()
    assert not np.signbit(zeros).all()
    assert sizes.max() > 2.0**59
    subnormal = (sizes > 0) & (sizes < np.finfo(np.float32).tiny)
    assert [int(row.sum()) for row in subnormal if row.any()] == [64]


@pytest.mark.parametrize("seed", range(5))
def test_subnormal_numbers_read_as_zeros_are_seen(seed: int) -> None:
    problem = Problem("matmul", (10, 10, 8), "f32", "nn")
    inputs = draw_extremes(problem, np.random.default_rng(seed))
    flushed = np.where(np.abs(inputs.a) < np.finfo(np.float32).tiny, 0, inputs.a)
    assert compare(inputs, multiplied(flushed, inputs.b, "f32"))[0].max_error > 1
