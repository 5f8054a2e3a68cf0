"""A function for each m of a range, by kernels of a few m, here in numpy."""

from functools import partial
from typing import Any

import numpy as np
import pytest

from tuner.analysis.row_ranges import RowBlock, RowRange, row_cover
from tuner.core.errors import UsageError
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.targets.range_kernel import RangeKernel

N, K = 5, 4
B = np.arange(K * N, dtype=np.float32).reshape(K, N)


def numpy_kernel(rows: int, epilogue: str, a: Any, b: Any, *others: Any, out: Any) -> None:
    assert [array.shape for array in (a, b, out)] == [(rows, K), (K, N), (rows, N)]
    assert all(array.flags.c_contiguous for array in (a, b, *others, out))
    added = out.copy() if epilogue == "accumulate" else sum(others)
    out[...] = a @ b + added


def range_kernel(problem: Problem) -> RangeKernel:
    row_range = RowRange(problem, 2)
    blocks = [RowBlock(rows, 1e-6 + rows * 1e-6) for rows in row_range.tuned_rows]
    kernels = [partial(numpy_kernel, block.rows, problem.epilogue) for block in blocks]
    return RangeKernel(row_range, row_cover(blocks, problem), kernels)


def test_each_m_of_the_range_is_right_in_a_new_array_and_in_a_given_one() -> None:
    kernel = range_kernel(Matmul(21, N, K))
    for rows in range(2, 22):
        a = np.arange(rows * K, dtype=np.float32).reshape(rows, K)
        out = np.full((rows, N), np.nan, np.float32)
        assert kernel(a, B, out=out) is out
        assert np.array_equal(out, a @ B)
        assert np.array_equal(kernel(a, B), a @ B)


def test_rows_of_an_addend_go_with_those_of_c_and_what_c_held_counts_once() -> None:
    residual = range_kernel(Matmul(13, N, K, epilogue="residual"))
    accumulate = range_kernel(Matmul(13, N, K, epilogue="accumulate"))
    for rows in range(2, 14):
        a = np.ones((rows, K), np.float32)
        addend = np.arange(rows * N, dtype=np.float32).reshape(rows, N)
        assert np.array_equal(residual(a, B, addend), a @ B + addend)
        assert np.array_equal(accumulate(a, B, out=addend.copy()), a @ B + addend)


def test_arguments_that_kernels_do_not_check_are_refused() -> None:
    kernel = range_kernel(Matmul(13, N, K))
    a = np.ones((3, K), np.float32)
    both = np.zeros((4, N), np.float32)
    fixed = np.zeros((3, N), np.float32)
    fixed.flags.writeable = False
    for inputs, out, message in (
        ((a[:1], B), None, "a: found 1 rows, allowed 2 to 13"),
        ((np.ones((14, K), np.float32), B), None, "a: found 14 rows"),
        ((a.tolist(), B), None, "a: found 0 rows"),
        ((a,), None, "found 1 arrays, allowed a, b"),
        ((a.astype(np.float64), B), None, "^a: "),
        ((a, B), fixed, "out: is read-only"),
        ((a, both), both[:3], "out: is written to, but shares memory with b"),
    ):
        with pytest.raises(UsageError, match=message):
            kernel(*inputs, out=out)
    with pytest.raises(UsageError, match="out: is missing"):
        range_kernel(Matmul(13, N, K, epilogue="accumulate"))(a, B)


def test_it_says_what_it_is() -> None:
    assert repr(range_kernel(Matmul(6, N, K))) == "<kernel of 2..6x5x4: 5 numbers of rows are tuned>"
