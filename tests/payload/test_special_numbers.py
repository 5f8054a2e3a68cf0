"""Draws with NaN, infinity and unit vectors: what is expected is what numpy computes in float64."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tuner.core.numpy_types import widened
from tuner.core.problem import BatchMatmul, Matmul, Problem
from tuner.payload.reference import (
    Array,
    Inputs,
    compare,
    compare_tile,
    draw,
    draw_base,
    negated,
    with_special_numbers,
)
from tuner.payload.special_numbers import COLUMN_KINDS, UNIT

SIZES = st.integers(1, 9)


def drawn(problem: Problem, seed: int) -> Inputs:
    rng = np.random.default_rng(seed)
    base = draw_base(problem, rng)
    return with_special_numbers(draw(problem, base, rng), rng)


def product(inputs: Inputs) -> Array:
    """C in float64, of the arrays as a kernel reads them."""
    a, b = (widened(each).astype(np.float64) for each in (inputs.a, inputs.b))
    if inputs.problem.layout == "tn":
        a = a.swapaxes(-1, -2)
    if inputs.problem.layout == "nt":
        b = b.swapaxes(-1, -2)
    with np.errstate(invalid="ignore"):
        c: Array = np.einsum("...mk,...kn->...mn", a, b).reshape(inputs.problem.rows, -1)
        if inputs.bias is not None:
            c = np.maximum(c + widened(inputs.bias), 0)
    return c


@settings(max_examples=25)
@given(
    st.tuples(SIZES, SIZES, SIZES, SIZES),
    st.sampled_from(["f32", "f64", "bf16"]),
    st.sampled_from(["nn", "nt", "tn"]),
    st.sampled_from(["none", "bias_relu"]),
    st.integers(0, 9),
)
def test_the_product_of_the_arrays_is_what_is_expected(
    sizes: tuple[int, int, int, int], dtype: str, layout: str, epilogue: str, seed: int
) -> None:
    inputs = drawn(BatchMatmul(*sizes, dtype, layout, epilogue), seed)
    problem = inputs.problem
    result = product(inputs).astype(np.float64 if dtype == "f64" else np.float32)
    verdict, worst = compare(inputs, result)
    assert verdict.max_error <= 1, worst
    rows, columns = np.arange(0, problem.rows, 2), slice(problem.sizes[1] // 2, problem.sizes[1])
    assert compare_tile(inputs, result, rows, columns)[0].max_error <= 1


def test_most_elements_stay_numbers_and_each_kind_is_there() -> None:
    inputs = drawn(Matmul(16, 16, 8), 0)
    expected = inputs.expected
    assert np.isfinite(expected).sum() == 14 * 14  # all but rows and columns with infinity or NaN
    for axis in (0, 1):
        assert np.isnan(expected).all(axis=axis).sum() == 1
        assert (~np.isfinite(expected)).all(axis=axis).sum() == 2
    for array, axis in ((inputs.a, 1), (inputs.b, 0)):
        assert (np.count_nonzero(array, axis=axis) == 1).sum() == 1


@pytest.mark.parametrize("place", ["NaN", "infinity"])
def test_a_number_in_place_of_what_is_not_one_is_wrong_and_so_is_the_other_way_round(place: str) -> None:
    inputs = drawn(Matmul(16, 16, 8), 0)
    result = product(inputs)
    at = np.argwhere(np.isnan(result) if place == "NaN" else np.isinf(result))[0]
    result[tuple(at)] = 1.0
    assert compare(inputs, result)[0].max_error == np.inf
    result = product(inputs)
    result[tuple(np.argwhere(np.isfinite(result))[0])] = np.nan if place == "NaN" else np.inf
    assert compare(inputs, result)[0].max_error == np.inf


def test_the_last_bit_of_a_unit_vectors_product_counts() -> None:
    inputs = drawn(Matmul(16, 16, 4096), 0)
    assert inputs.special is not None
    result = product(inputs)
    column, values = inputs.special.columns[COLUMN_KINDS.index(UNIT)]
    row = next(row for row in range(16) if np.isfinite(result[row, column]))
    assert result[row, column] == values[row]
    result[row, column] *= 1 + 2.0**-20
    assert compare(inputs, result)[0].max_error > 1


@pytest.mark.parametrize("sizes", [(1, 16, 8), (3, 16, 8), (16, 1, 8), (16, 16, 8), (1, 1, 8)])
def test_products_with_zeros_count_also_in_thin_matrices(sizes: tuple[int, int, int]) -> None:
    inputs = drawn(Matmul(*sizes), 0)
    a, b = (each.astype(np.float64) for each in (inputs.a, inputs.b))
    with np.errstate(invalid="ignore"):
        products = a[:, :, None] * b[None]
        without_zeros = np.where((a[:, :, None] == 0) | (b[None] == 0), 0, products).sum(axis=1)
    assert compare(inputs, without_zeros)[0].max_error == np.inf


def test_the_next_draw_has_usual_numbers_again() -> None:
    inputs = drawn(Matmul(16, 16, 8), 0)
    after = negated(inputs, (np.empty_like(inputs.a), np.empty_like(inputs.b)))
    assert np.isfinite(after.expected).all()
    assert compare(after, product(after))[0].max_error <= 1


@pytest.mark.parametrize("operand", ["A", "B"])
@pytest.mark.parametrize("read", ["NaN as 0", "no infinity", "no minus infinity"])
def test_nan_and_infinities_of_either_sign_count_in_either_operand(operand: str, read: str) -> None:
    inputs = drawn(Matmul(16, 16, 8), 0)
    a, b = (each.astype(np.float64) for each in (inputs.a, inputs.b))
    changed = a if operand == "A" else b
    where, number = {
        "NaN as 0": (np.isnan(changed), 0.0),
        "no infinity": (changed == np.inf, 3e38),
        "no minus infinity": (changed == -np.inf, -3e38),
    }[read]
    assert where.sum() == 1
    changed[where] = number
    with np.errstate(invalid="ignore", over="ignore"):
        result = np.einsum("mk,kn->mn", a, b).astype(np.float32)
    assert compare(inputs, result)[0].max_error == np.inf


@settings(max_examples=25)
@given(st.tuples(SIZES, SIZES, SIZES, SIZES), st.sampled_from(["nn", "nt", "tn"]), st.integers(0, 9))
def test_bytes_have_a_row_and_a_column_of_the_least_one(
    sizes: tuple[int, int, int, int], layout: str, seed: int
) -> None:
    inputs = drawn(BatchMatmul(*sizes, "i8", layout), seed)
    result = product(inputs)
    assert result.max() >= 2**14 * sizes[3]
    verdict, worst = compare(inputs, result.astype(np.int32))
    assert verdict.max_error == 0, worst
    least_is_another = replace(inputs, a=np.maximum(inputs.a, -127))
    assert compare(inputs, product(least_is_another).astype(np.int32))[0].max_error > 1


def test_of_many_bytes_the_sum_of_the_least_ones_needs_more_than_24_bits() -> None:
    assert drawn(Matmul(3, 3, 5000, "i8"), 0).expected.max() >= 2**24


def test_types_without_infinity_have_none() -> None:
    assert drawn(Matmul(16, 16, 8, "tf32"), 0).special is None
