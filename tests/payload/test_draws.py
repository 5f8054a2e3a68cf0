"""Draws: special numbers, extremes, 8-bit floats; of large results some rows are compared."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.epilogues import EPILOGUES
from tests.payload.test_reference import finish, inputs_of, operands
from tuner.core.dtypes import FLOAT8S, INPUT_DTYPES, number_type
from tuner.core.errors import UsageError
from tuner.core.matmul import BatchMatmul, Matmul
from tuner.core.numpy_types import FLOAT8_STEPS, widened
from tuner.core.problem import (
    LAYOUTS,
    Problem,
)
from tuner.core.problem_classes import MatmulProblem
from tuner.payload import comparison, drawing, reference
from tuner.payload.comparison import compare, compare_sampled, sampled_rows
from tuner.payload.drawing import draw, draw_base, has_narrow_bias, with_special_bias, with_special_numbers
from tuner.payload.inputs import draw_extremes
from tuner.payload.reference import Array, Inputs
from tuner.payload.special_numbers import COLUMN_KINDS, UNIT

SIZES = st.integers(1, 9)


def drawn(problem: Problem, seed: int) -> Inputs:
    rng = np.random.default_rng(seed)
    return drawing.with_special_numbers(draw(problem, draw_base(problem, rng), rng), rng)


def product(inputs: Inputs) -> Array:
    a, b = (each.astype(np.float64) for each in operands(inputs))
    with np.errstate(invalid="ignore"):
        return finish(inputs, np.einsum("...mk,...kn->...mn", a, b).reshape(inputs.problem.rows, -1))


def problems(*dtypes: str, epilogues: tuple[str, ...] = ("none",)) -> st.SearchStrategy[Problem]:
    kinds = (st.sampled_from(each) for each in (dtypes, LAYOUTS, epilogues))
    return st.builds(BatchMatmul, SIZES, SIZES, SIZES, SIZES, *kinds)


@settings(max_examples=25)
@given(problems("f32", "f64", "bf16", epilogues=EPILOGUES), st.integers(0, 9))
def test_the_product_of_the_arrays_is_what_is_expected(problem: Problem, seed: int) -> None:
    inputs, dtype = drawn(problem, seed), problem.dtype
    result = product(inputs).astype(np.float64 if dtype == "f64" else np.float32)
    verdict, worst = compare(inputs, result)
    assert verdict.max_error <= 1, worst
    rows, columns = np.arange(0, problem.rows, 2), slice(problem.sizes[1] // 2, problem.sizes[1])
    assert comparison.compare_tile(inputs, result, rows, columns)[0].max_error <= 1


def test_each_kind_of_number_is_there_in_one_draw_and_usual_ones_in_the_next() -> None:
    inputs = drawn(Matmul(16, 16, 8), 0)
    expected = inputs.expected
    assert np.isfinite(expected).sum() == 14 * 14  # all but rows and columns with infinity or NaN
    for axis in (0, 1):
        assert np.isnan(expected).all(axis=axis).sum() == 1
        assert (~np.isfinite(expected)).all(axis=axis).sum() == 2
    for array, axis in ((inputs.a, 1), (inputs.b, 0)):
        assert (np.count_nonzero(array, axis=axis) == 1).sum() == 1
    after = drawing.negated(inputs, (np.empty_like(inputs.a), np.empty_like(inputs.b)))
    assert np.isfinite(after.expected).all()
    assert compare(after, product(after))[0].max_error <= 1
    assert drawn(Matmul(16, 16, 8, "tf32"), 0).special is None
    # of many bytes the sum of the least ones needs more than 24 bits
    assert drawn(Matmul(3, 3, 5000, "i8"), 0).expected.max() >= 2**24


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_a_number_in_place_of_what_is_not_one_is_wrong_and_so_is_the_other_way_round(number: float) -> None:
    inputs = drawn(Matmul(16, 16, 8), 0)
    is_none = np.isnan if np.isnan(number) else np.isinf
    for is_replaced, other in ((is_none, 1.0), (np.isfinite, number)):
        result = product(inputs)
        result[tuple(np.argwhere(is_replaced(result))[0])] = other
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


@pytest.mark.parametrize("operand", ["A", "B"])
@pytest.mark.parametrize("read", ["NaN as 0", "no infinity", "no minus infinity"])
def test_nan_and_infinities_of_either_sign_count_in_either_operand(operand: str, read: str) -> None:
    inputs = drawn(Matmul(16, 16, 8), 0)
    a, b = (each.astype(np.float64) for each in (inputs.a, inputs.b))
    changed = a if operand == "A" else b
    infinity = -np.inf if "minus" in read else np.inf
    is_nan = read == "NaN as 0"
    where, number = (np.isnan(changed), 0.0) if is_nan else (changed == infinity, np.sign(infinity) * 3e38)
    assert where.sum() == 1
    changed[where] = number
    with np.errstate(invalid="ignore", over="ignore"):
        result = np.einsum("mk,kn->mn", a, b).astype(np.float32)
    assert compare(inputs, result)[0].max_error == np.inf


def test_long_sums_of_bytes_are_no_numbers_of_f32_and_beyond_its_integers() -> None:
    for k in (1025, 4096):
        result = product(drawn(Matmul(3, 4, k, dtype="i8"), 1))
        assert result.max() > 2**24
        assert result.min() < -0.99 * 2**24
        assert np.any(result.astype(np.float32).astype(np.int64) != result)
    result = product(drawn(Matmul(1, 2, 131_071, dtype="i8"), 1))  # the largest K
    assert 2**30 < result.max() < 2**31


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "f16", "i8"])
def test_a_special_bias_has_numbers_of_any_size_and_nan_and_infinity(dtype: str) -> None:
    problem = Matmul(2, 64, 3, dtype=dtype, epilogue="bias_relu")
    plain = draw(problem, draw_base(problem, np.random.default_rng(0)), np.random.default_rng(1))
    special = with_special_numbers(plain, np.random.default_rng(2))
    numbers = widened(special.extra[0]).astype(np.float64)
    finite = np.abs(numbers[np.isfinite(numbers)])
    assert finite.max() > 1e3
    if dtype == "i8":
        return
    assert np.count_nonzero(np.isnan(numbers)) == 1
    assert {float("inf"), float("-inf")} <= set(numbers.tolist())
    assert 0 < finite[finite > 0].min() < 1e-5
    assert np.any((numbers == 0) & np.signbit(numbers))
    expected = special.expected
    assert np.isnan(expected[:, np.isnan(numbers)]).all()
    few = replace(problem, sizes=(2, 2, 3))
    assert has_narrow_bias(few)
    plain = draw(few, draw_base(few, np.random.default_rng(0)), np.random.default_rng(1))
    assert np.isfinite(widened(with_special_numbers(plain, np.random.default_rng(2)).extra[0])).all()
    assert np.isnan(widened(with_special_bias(plain, np.random.default_rng(2)).extra[0])).any()


@settings(max_examples=25)
@given(problems("i8"), st.integers(0, 9))
def test_bytes_have_a_row_and_a_column_of_the_least(problem: Problem, seed: int) -> None:
    inputs = drawn(problem, seed)
    result = product(inputs)
    assert result.max() >= 2**14 * problem.sizes[2]
    verdict, worst = compare(inputs, result.astype(np.int32))
    assert verdict.max_error == 0, worst
    least_is_another = replace(inputs, a=np.maximum(inputs.a, -127))
    assert compare(inputs, product(least_is_another).astype(np.int32))[0].max_error > 1


def multiplied(a: Array, b: Array, dtype: str) -> Array:
    total = np.zeros((a.shape[0], b.shape[1]), reference.NUMPY_DTYPES[dtype])
    for term in range(a.shape[1]):
        total += a[:, term, None].astype(total.dtype) * b[term].astype(total.dtype)
    return total


@pytest.mark.parametrize("dtype", INPUT_DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_right_answer_is_right_and_finite(dtype: str, layout: str) -> None:
    problem = MatmulProblem("matmul", (20, 25, 33), dtype, layout)
    for seed in range(5):
        inputs = draw_extremes(problem, np.random.default_rng(seed))
        result = multiplied(*operands(inputs), problem.accumulator)
        assert np.isfinite(result).all()
        assert compare(inputs, result)[0].max_error <= 0.5


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_a_factor_of_large_sums_does_not_make_them_overflow(dtype: str) -> None:
    problem = Matmul(20, 25, 33, dtype, epilogue="scale", output=dtype)
    for seed in range(20):
        expected = draw_extremes(problem, np.random.default_rng(seed)).expected
        assert np.isfinite(expected).all()


def test_there_are_rows_of_each_kind() -> None:
    a = draw_extremes(MatmulProblem("matmul", (5, 5, 64), "f32", "nn"), np.random.default_rng(0)).a
    sizes = np.abs(a)
    assert any((row > 0).all() for row in a)
    zeros = a[sizes == 0]
    assert np.signbit(zeros).any()
    assert not np.signbit(zeros).all()
    assert sizes.max() > 2.0**59
    subnormal = (sizes > 0) & (sizes < np.finfo(np.float32).tiny)
    assert [int(row.sum()) for row in subnormal if row.any()] == [64]


def test_of_many_rows_only_compared_ones_are_small() -> None:
    problem = MatmulProblem("matmul", (500, 5, 64), "f32", "nn")
    compared = np.arange(7, 500, 9)
    inputs = draw_extremes(problem, np.random.default_rng(0), compared)
    is_small = (np.abs(inputs.a) < np.finfo(np.float32).tiny).all(axis=1)
    assert set(np.flatnonzero(is_small)) < set(compared)
    assert 5 < is_small.sum() < len(compared) / 2
    assert (np.abs(np.delete(inputs.a, compared, axis=0)) > 2.0**59).any()


@pytest.mark.parametrize("seed", range(5))
def test_subnormal_numbers_read_as_zeros_are_seen(seed: int) -> None:
    inputs = draw_extremes(MatmulProblem("matmul", (10, 10, 8), "f32", "nn"), np.random.default_rng(seed))
    flushed = np.where(np.abs(inputs.a) < np.finfo(np.float32).tiny, 0, inputs.a)
    assert compare(inputs, multiplied(flushed, inputs.b, "f32"))[0].max_error > 1


# 8-bit floats: draws of which halves and doubles are numbers too, and a machine without their package.
LARGEST = 16.0  # of what is drawn, by far


@pytest.mark.parametrize("dtype", FLOAT8S)
def test_halves_and_doubles_of_what_is_drawn_are_exact_by_the_finest_step(dtype: str) -> None:
    stored = reference.NUMPY_DTYPES[dtype]
    numbers = np.arange(2**8, dtype=np.uint8).view(stored).astype(np.float32)
    numbers = drawing.round_inputs(numbers[np.abs(numbers) <= LARGEST], dtype).astype(np.float32)
    for factor in (0.5, 2.0):
        scaled = numbers * np.float32(factor)
        assert np.array_equal(scaled.astype(stored).astype(np.float32), scaled)
    finer = np.float32(1.0) / FLOAT8_STEPS[dtype] / 4  # has halves that are none
    assert finer.astype(stored).astype(np.float32) != finer


@pytest.mark.parametrize(("dtype", "number", "rounded"), [("e4m3", 1.0625, 1.0), ("e5m2", 1.375, 1.5)])
def test_draws_are_rounded_to_nearest_ties_to_even(dtype: str, number: float, rounded: float) -> None:
    found = drawing.round_inputs(np.array([number, -number], np.float32), dtype)
    assert found.astype(np.float32).tolist() == [rounded, -rounded]


def test_without_their_package_none_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(reference.NUMPY_DTYPES, "e4m3")
    missing = "^dtype: e4m3 needs the package ml_dtypes, which is missing; pip install ml_dtypes$"
    with pytest.raises(UsageError, match=missing):
        draw_base(Matmul(8, 8, 8, "e4m3"), np.random.default_rng(0))


# Of a large result some rows are compared, and that all elements are finite.
LARGE = Matmul(1024, 6, 5)


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "WHOLE_FLOP", 1)


def drawn_large() -> tuple[Inputs, Array]:
    inputs = inputs_of(LARGE, 0)
    return inputs, inputs.expected.astype(reference.output_dtype(LARGE))


def test_a_small_problem_is_compared_whole() -> None:
    inputs, right = drawn_large()
    verdict, _ = compare_sampled(inputs, right)
    assert (verdict.elements, verdict.notes) == (1024 * 6, ())


@pytest.mark.usefixtures("large")
def test_a_right_result_is_reported_with_how_much_was_looked_at_and_a_wrong_element_is_found() -> None:
    verdict, _ = compare_sampled(*drawn_large())
    rows = len(sampled_rows(1024))
    assert verdict.max_error <= 1
    assert verdict.elements == rows * 6
    assert verdict.notes == (f"{rows} of 1024 rows compared, all elements finite",)
    inputs, result = drawn_large()
    row = next(row for row in range(1024) if row not in sampled_rows(1024))
    result[row, 2] = np.nan
    verdict, options = compare_sampled(inputs, result)
    assert (verdict.max_error, options) == (np.inf, "1 of 6144 elements are NaN or infinite")
    assert comparison.not_finite(np.array([[1.0, np.nan], [np.inf, 2.0]], np.float32)) == 2


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("start", [0, 8, 504, 1016])
def test_a_wrong_tile_is_found_wherever_it_is(start: int) -> None:
    inputs, result = drawn_large()
    result[start : start + 8, 3] += 1
    verdict, options = compare_sampled(inputs, result)
    assert verdict.max_error > 1
    assert ", 3]" in options


@given(st.integers(1, 5000))
def test_rows_are_spread_over_all_of_c(m: int) -> None:
    rows = sampled_rows(m)
    assert (rows[0], rows[-1], list(rows)) == (0, m - 1, sorted(set(rows)))
    steps = [after - before for before, after in itertools.pairwise(rows)]
    assert max(steps, default=0) <= 2 * -(-m // 256)


@pytest.mark.parametrize("dtype", [dtype for dtype in INPUT_DTYPES if not number_type(dtype).is_float])
def test_numbers_of_an_integer_type_reach_its_upper_half(dtype: str) -> None:
    """A kernel that cuts numbers to a narrower type is wrong on them."""
    rng = np.random.default_rng(0)
    problem = Matmul(16, 16, 64, dtype)
    inputs = draw(problem, draw_base(problem, rng), rng)
    for operand in (inputs.a, inputs.b):
        assert np.abs(operand.astype(np.int64)).max() > number_type(dtype).largest / 2


@pytest.mark.parametrize("k", [1, 2, 64, 4096, 131_071])
def test_integers_of_16_bits_reach_their_upper_half_and_no_sum_overflows(k: int) -> None:
    rng = np.random.default_rng(0)
    a, b = drawing.wide_integers(rng.standard_normal((3, k)), rng.standard_normal((k, 5)), "i16", "i32")
    assert a.dtype == b.dtype == np.int16
    assert a.all()
    assert b.all()
    for operand in (a, b)[: min(k, 2)]:
        assert (2 * np.abs(operand.astype(np.int64)).max()) in range(2**15 - 2**14, 2**15)
    magnitudes = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
    assert 4 * magnitudes.max() < 2**31
