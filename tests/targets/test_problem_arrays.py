"""Arrays of a problem, with the results that are expected in them."""

import re

import numpy as np
import pytest

from tuner.core.errors import CandidateError
from tuner.core.matmul import Matmul
from tuner.core.problem import LAYOUTS, Problem
from tuner.payload.reference import Array
from tuner.targets.arrays import ProblemArrays

SMALL = Matmul(6, 5, 7)
Rng = np.random.Generator


def multiply(problem: Problem, arrays: ProblemArrays) -> None:
    a, b, c = arrays.operands
    a, b = (each.astype(c.dtype) for each in (a, b))
    c[...] = (a.T if problem.layout == "tn" else a) @ (b.T if problem.layout == "nt" else b)


def at(address: int, array: Array) -> tuple[int, int]:
    return divmod(address - array.ctypes.data, array.itemsize)


@pytest.mark.parametrize("dtype", ["f32", "i8"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_answer_is_that_of_the_last_mark(layout: str, dtype: str, rng: Rng) -> None:
    problem = Matmul(6, 5, 7, dtype, layout)
    arrays = ProblemArrays(problem, rng)
    a, b, c = arrays.operands
    for calls in (1, 3, 256, 300):
        arrays.fill(rng)
        number, element = (int(each) for each in arrays.marks(rng, calls)[(calls - 1) % 256])
        array = a if 0 <= at(number, a)[0] < a.size else b
        index, byte = at(number, array)
        assert byte == array.itemsize - 1
        assert at(element, c)[1] == c.itemsize - 2
        assert at(element, c)[0] in range(c.size)
        top_byte = array.reshape(-1)[index : index + 1].view(np.uint8)[-1:]
        top_byte ^= 0x80
        multiply(problem, arrays)
        top_byte ^= 0x80
        assert arrays.evaluate().max_error <= 1.0
    multiply(problem, arrays)  # without the change
    with pytest.raises(CandidateError, match="elements are wrong"):
        arrays.evaluate()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def arrays(rng: Rng) -> ProblemArrays:
    return ProblemArrays(SMALL, rng)


def test_marks_are_of_both_inputs(arrays: ProblemArrays, rng: Rng) -> None:
    a, _, _ = arrays.operands
    of_a = [0 <= at(int(number), a)[0] < a.size for number, _ in arrays.marks(rng, 1)]
    assert 64 < sum(of_a) < 192


def test_turned_signs_find_ones_where_nan_was(arrays: ProblemArrays) -> None:
    multiply(SMALL, arrays)
    before = arrays.operands[2].copy()
    arrays.flip_signs()
    assert arrays.operands[2].tolist() == np.ones((6, 5)).tolist()
    multiply(SMALL, arrays)
    assert arrays.evaluate().elements == 30
    assert np.array_equal(arrays.operands[2], before)


def test_nan_or_a_number_that_no_kernel_knows_covers_c(arrays: ProblemArrays, rng: Rng) -> None:
    found = []
    for _ in range(30):
        arrays.overwrite_output(rng)
        assert len(np.unique(arrays.operands[2])) == 1
        found.append(float(arrays.operands[2][0, 0]))
    numbers = [each for each in found if not np.isnan(each)]
    assert 5 < len(numbers) < 25
    assert len(set(numbers)) > 5


def test_a_glance_sees_rows_that_are_wrong(arrays: ProblemArrays, rng: Rng) -> None:
    multiply(SMALL, arrays)
    arrays.compare_some_rows(rng)
    arrays.operands[2][...] = 0
    with pytest.raises(CandidateError, match=re.escape("30 of 30 elements are wrong")):
        arrays.compare_some_rows(rng)


def multiplied_extremes(problem: Problem, rng: Rng) -> ProblemArrays:
    """Returns arrays with extreme inputs and their right product."""
    arrays = ProblemArrays(problem, rng)
    arrays.fill_with_extremes(rng)
    multiply(problem, arrays)
    arrays.check_rows(rng)
    return arrays


def test_a_kernel_that_reads_subnormal_numbers_as_zeros_is_seen_among_many_rows(rng: Rng) -> None:
    arrays = multiplied_extremes(Matmul(1000, 20, 8), rng)
    a, b, c = arrays.operands
    np.matmul(np.where(np.abs(a) < np.finfo(np.float32).tiny, 0, a), b, out=c)
    with pytest.raises(CandidateError, match="elements looked at are wrong"):
        arrays.check_rows(rng)


def test_rows_on_extreme_inputs_are_evaluated(rng: Rng) -> None:
    arrays = multiplied_extremes(Matmul(70, 20, 7), rng)
    c = arrays.operands[2]
    c[:, 3] += np.abs(c[:, 3]) + 1
    with pytest.raises(CandidateError, match=r"of 1280 elements looked at are wrong"):
        arrays.check_rows(rng)
    c[5, 6] = np.nan
    with pytest.raises(CandidateError, match=r"^1 of 1400 elements are NaN or infinite$"):
        arrays.check_rows(rng)
