"""Special numbers of matrices however small: which results there are, and which wrong kernels they find."""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.default_suite import ALL
from tests.payload.test_reference import finish, operands
from tuner.core.dtypes import number_type
from tuner.core.epilogues import EPILOGUES
from tuner.core.matmul import GroupedMatmul, Matmul
from tuner.core.numpy_types import widened
from tuner.core.problem import LAYOUTS, Problem
from tuner.payload.comparison import compare
from tuner.payload.drawing import draw, draw_base, special_draws, with_special_numbers
from tuner.payload.reference import Array, Inputs, as_stored

Float = npt.NDArray[np.float64]  # or of f32
DTYPES = ("f32", "f64", "bf16", "f16")
SMALL = ((1, 1, 1), (1, 16, 8), (4, 16, 8), (5, 3, 2))
SIZES = st.integers(1, 40)


def draws_of(problem: Problem, seed: int) -> Iterator[Inputs]:
    """Yields a usual draw, then all special ones."""
    rng = np.random.default_rng(seed)
    base = draw_base(problem, rng)
    yield draw(problem, base, rng)
    for number in range(special_draws(problem)):
        yield with_special_numbers(draw(problem, base, rng), rng, number)


def product(inputs: Inputs, a: Array | None = None, b: Array | None = None) -> Array:
    """Returns C as stored, by sums of the problem's type; ``a``, ``b``: others than the inputs."""
    of_a, of_b = operands(inputs)
    sums = np.float64 if inputs.problem.dtype == "f64" else np.float32
    left: Float = (of_a if a is None else a).astype(sums)
    right: Float = (of_b if b is None else b).astype(sums)
    with np.errstate(invalid="ignore", over="ignore"):
        result = np.einsum("...mk,...kn->...mn", left, right).reshape(inputs.problem.rows, -1)
        return as_stored(finish(inputs, result), inputs.problem.result_dtype)


def clipped(numbers: Array, sign: int, largest: float) -> Array:
    with np.errstate(over="ignore"):
        return np.where(numbers == sign * np.inf, sign * largest, numbers).astype(numbers.dtype)


def largest_of(inputs: Inputs) -> float:
    return number_type(inputs.problem.result_dtype).largest


def without_nan(numbers: Array) -> Array:
    return np.where(np.isnan(numbers), 0, numbers).astype(numbers.dtype)


def too_large_to_be_right(inputs: Inputs) -> Array:
    result = widened(product(inputs))
    is_large = (
        np.abs(result) > largest_of(inputs) / 1.01
    )  # f16 times a power of two above others: half as large
    return np.where(is_large & np.isfinite(result), np.inf, result).astype(result.dtype)


def without_last(inputs: Inputs, axis: int) -> Array:
    """C before, but for what is written without the last row or column."""
    result = product(inputs)
    rows = slice(-1, None) if axis == 0 else slice(None)
    columns = slice(-1, None) if axis == 1 else slice(None)
    result[rows, columns] = inputs.output_before[rows, columns]
    return result


def without_last_product(inputs: Inputs) -> Array:
    a, _ = operands(inputs)
    a = a.copy()
    a[..., -1] = 0
    return product(inputs, a)


def without_products_with_zeros(inputs: Inputs) -> Array:
    """C of a kernel that takes a product with 0 for 0, also if the other number is NaN."""
    a, b = operands(inputs)
    with np.errstate(invalid="ignore", over="ignore"):
        products = a[:, :, None].astype(np.float64) * b[None]
        sums = np.where((a[:, :, None] == 0) | (b[None] == 0), 0, products).sum(axis=1)
        return as_stored(finish(inputs, sums.astype(operands(inputs)[0].dtype)), inputs.problem.result_dtype)


def reading_a(change: Callable[[Array, Inputs], Array]) -> Callable[[Inputs], Array]:
    return lambda inputs: product(inputs, a=change(operands(inputs)[0], inputs))


def reading_b(change: Callable[[Array, Inputs], Array]) -> Callable[[Inputs], Array]:
    return lambda inputs: product(inputs, b=change(operands(inputs)[1], inputs))


def to_finite(sign: int) -> Callable[[Array, Inputs], Array]:
    return lambda numbers, inputs: clipped(numbers, sign, largest_of(inputs))


WRONG: dict[str, Callable[[Inputs], Array]] = {
    "clips infinity": lambda inputs: clipped(product(inputs), 1, largest_of(inputs)),
    "clips minus infinity": lambda inputs: clipped(product(inputs), -1, largest_of(inputs)),
    "clips infinity in A": reading_a(to_finite(1)),
    "clips minus infinity in A": reading_a(to_finite(-1)),
    "clips infinity in B": reading_b(to_finite(1)),
    "clips minus infinity in B": reading_b(to_finite(-1)),
    "reads NaN in A as 0": reading_a(lambda numbers, _: without_nan(numbers)),
    "reads NaN in B as 0": reading_b(lambda numbers, _: without_nan(numbers)),
    "leaves out products with 0": without_products_with_zeros,
    "returns 0 for NaN": lambda inputs: without_nan(product(inputs)),
    "overflows early": too_large_to_be_right,
    "leaves out the last row": lambda inputs: without_last(inputs, 0),
    "leaves out the last column": lambda inputs: without_last(inputs, 1),
    "leaves out the last product": without_last_product,
}


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize("dtype", DTYPES)
def test_wrong_kernels_are_found_on_small_matrices_by_any_draw(dtype: str) -> None:
    for sizes in SMALL:
        problem = Matmul(*sizes, dtype, output="f16" if dtype == "f16" else "")
        for seed in range(3):
            draws = list(draws_of(problem, seed))
            for inputs in draws:
                verdict, worst = compare(inputs, product(inputs))
                assert verdict.max_error <= 1, worst
            for name, kernel in WRONG.items():
                errors = [compare(inputs, kernel(inputs))[0].max_error for inputs in draws]
                assert max(errors) > 1, (name, sizes, seed)


def has_all_results(expected: Array, largest: float) -> set[str]:
    with np.errstate(invalid="ignore"):
        present = {
            "NaN": np.isnan(expected),
            "infinity": expected == np.inf,
            "minus infinity": expected == -np.inf,
            "large": (np.abs(expected) > largest / 1.01) & np.isfinite(expected),
        }
    return {name for name, is_one in present.items() if is_one.any()}


@settings(max_examples=40)
@given(SIZES, SIZES, SIZES, st.sampled_from(DTYPES), st.sampled_from(LAYOUTS), st.integers(0, 99))
def test_each_kind_of_result_is_there_whatever_the_sizes(
    m: int, n: int, k: int, dtype: str, layout: str, seed: int
) -> None:
    problem = Matmul(m, n, k, dtype, layout, output="f16" if dtype == "f16" else "")
    results = set()
    for inputs in draws_of(problem, seed):
        results |= has_all_results(inputs.expected, number_type(dtype).largest)
        verdict, worst = compare(inputs, product(inputs))
        assert verdict.max_error <= 1, worst
    assert results == {"NaN", "infinity", "minus infinity", "large"}


def test_groups_of_few_rows_have_each_kind_of_result() -> None:
    for problem in (GroupedMatmul(5, 8, 3, 4), GroupedMatmul(2, 200, 40, 4), GroupedMatmul(1, 1, 1, 1)):
        for seed in range(5):
            results = set()
            for inputs in draws_of(problem, seed):
                results |= has_all_results(inputs.expected, number_type("f32").largest)
            assert results == {"NaN", "infinity", "minus infinity", "large"}


def test_large_matrices_have_one_special_draw_and_small_ones_have_several() -> None:
    counts = [special_draws(Matmul(*sizes)) for sizes in ((32, 32, 1), (31, 32, 9), *SMALL)]
    assert counts == [1, 2, 8, 7, 2, 3]
    assert special_draws(Matmul(1, 1, 1, "i8")) == 1


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_no_factor_makes_numbers_that_are_too_large_for_the_sums(dtype: str) -> None:
    largest = np.finfo(np.float64 if dtype == "f64" else np.float32).max
    problem = Matmul(32, 33, 4, dtype, epilogue="scale")
    for seed in range(50):
        inputs = with_special_numbers(next(draws_of(problem, seed)), np.random.default_rng(seed))
        expected = inputs.expected
        assert (np.abs(expected) <= largest / 2)[np.isfinite(expected)].all(), seed


def test_special_numbers_before_each_epilogue_have_a_tolerance() -> None:
    for epilogue in EPILOGUES:
        for inputs in draws_of(Matmul(1, 5, 3, epilogue=epilogue), 1):
            assert np.isfinite(inputs.tolerance).all(), epilogue
