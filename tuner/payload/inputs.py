"""Inputs of kernels beyond the usual random draw: numbers of extreme size."""

from dataclasses import replace

import numpy as np

from tuner.core.dtypes import number_type
from tuner.core.numpy_types import widened
from tuner.core.problem import Problem
from tuner.payload.drawing import (
    base_of,
    draw_before,
    draw_extra,
    draw_offsets_of,
    draw_scales,
    with_special_bias,
)
from tuner.payload.reference import Array, Float64, Inputs, as_stored

ZERO_SHARE = 0.5  # of the numbers in a row of kind ZEROS


KINDS = 5
PLAIN, ONE_SIGN, ZEROS, LARGE, SMALL = range(KINDS)  # kinds of rows; of columns the first two are plain


def draw_extremes(problem: Problem, rng: np.random.Generator, compared: Array | None = None) -> Inputs:
    """Returns inputs whose rows of A and columns of B have zeros, very large or very small numbers.

    Other rows and columns are usual; some rows have one sign. Sums of products are exact, except for
    underflow. ``compared``: numbers of the rows of C that will be compared, None for all. Rows of A that are
    not compared are not small: a product with a subnormal number takes some processors a hundred times as
    long.
    """
    m, n, k = problem.sizes
    exponents = number_type(problem.dtype).extremes
    assert exponents is not None  # each dtype that is multiplied has some
    rows, columns = (
        rng.permutation(max(size, KINDS))[:size] % KINDS for size in (problem.rows, problem.b_matrices * n)
    )
    if compared is not None:
        is_left_out = np.ones(len(rows), np.bool_)
        is_left_out[compared] = False
        rows[is_left_out & (rows == SMALL)] = PLAIN
    a, b = (
        _whole_numbers(rng, (size, k), exponents.largest_whole)
        for size in (problem.rows, problem.b_matrices * n)
    )
    a[rows == ONE_SIGN] = np.abs(a[rows == ONE_SIGN])
    a[rows == ZEROS] *= _zeros(rng, (int(np.count_nonzero(rows == ZEROS)), k))
    b[columns == ZEROS] *= _zeros(rng, (int(np.count_nonzero(columns == ZEROS)), k))
    a = np.ldexp(a, _of_kinds(rows, exponents.large, exponents.small)[:, None])
    b = np.ldexp(b, _of_kinds(columns, exponents.column, -exponents.column)[:, None])
    base = base_of(
        problem,
        _stored(a.reshape(*problem.lead, m, k), problem),
        _stored(b.reshape(*problem.b_shape[:-2], n, k).swapaxes(-1, -2), problem),
        draw_scales(problem, rng),
        draw_offsets_of(problem, rng),
    )
    factors = np.ones(problem.rows), np.ones((problem.b_matrices, n))
    extra = draw_extra(problem, rng)
    before = draw_before(problem, rng)
    inputs = Inputs(problem, base, base.a, base.b, extra, *factors, before=before)
    special = with_special_bias(inputs, rng, kinds=0).extra
    # a large number times large sums would overflow
    arrays = zip(problem.after_product.arguments, extra, special, strict=True)
    return replace(inputs, extra=tuple(wide if argument.axes else usual for argument, usual, wide in arrays))


def _whole_numbers(rng: np.random.Generator, shape: tuple[int, int], largest: int) -> Float64:
    numbers = rng.integers(1, largest + 1, shape) * rng.choice((-1.0, 1.0), shape)
    return np.asarray(numbers, np.float64)


def _zeros(rng: np.random.Generator, shape: tuple[int, int]) -> Float64:
    return np.asarray(np.where(rng.random(shape) < ZERO_SHARE, rng.choice((-0.0, 0.0), shape), 1.0))


def _of_kinds(kinds: Array, large: int, small: int) -> Array:
    return np.where(kinds == LARGE, large, np.where(kinds == SMALL, small, 0))


def _stored(numbers: Float64, problem: Problem) -> Array:
    stored = as_stored(np.ascontiguousarray(numbers), problem.stored_dtype)
    assert np.array_equal(widened(stored), numbers)  # exact by the choice of exponents
    return stored
