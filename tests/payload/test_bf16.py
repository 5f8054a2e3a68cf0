import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.numpy_types import (
    BF16,
    are_equal,
    fill_with,
    fill_with_nan,
    hard_to_scale,
    is_nan,
    narrowed,
    scale,
    widened,
)

NUMBERS = st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=40)
WITHOUT = """
import sys

sys.modules["ml_dtypes"] = None
import numpy as np
from tuner.core.problem import Matmul
from tuner.payload.reference import compare, draw, draw_base, narrowed, widened
problem = Matmul(9, 7, 33, dtype="bf16", layout="LAYOUT", epilogue="bias_relu", output="bf16")
rng = np.random.default_rng(5)
inputs = draw(problem, draw_base(problem, rng), rng)
assert inputs.a.dtype == np.uint16
print([array.view(np.uint16).tolist() for array in inputs.arrays])
right = narrowed(inputs.expected)
print(compare(inputs, right)[0].max_error <= 1)
right[3, 2] = 0x4500  # 2048
print(compare(inputs, right)[1][:30])
"""


@given(NUMBERS)
def test_rounding_is_that_of_ml_dtypes(numbers: list[float]) -> None:
    array = np.array(numbers, np.float32)
    with np.errstate(over="ignore"):
        expected = array.astype(ml_dtypes.bfloat16)
    assert np.array_equal(narrowed(array).view(np.uint16), expected.view(np.uint16))


@given(NUMBERS)
def test_what_was_narrowed_is_widened_exactly(numbers: list[float]) -> None:
    narrow = narrowed(np.array(numbers, np.float32))
    assert widened(narrow).dtype == np.float32
    assert np.array_equal(widened(narrow), narrow.astype(np.float32))


def test_other_types_stay_as_they_are() -> None:
    array = np.arange(3, dtype=np.float16)
    assert widened(array) is array


def test_every_number_of_bf16_is_widened_as_ml_dtypes_does() -> None:
    every = np.arange(2**16, dtype=np.uint16).view(BF16)
    assert np.array_equal(widened(every), every.astype(np.float32), equal_nan=True)


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0, -0.5, -1.0, -2.0])
def test_every_number_is_scaled_as_by_a_product_in_f32(factor: float) -> None:
    every = np.arange(2**16, dtype=np.uint16).view(BF16)
    numbers = every[~is_nan(every)]
    scaled, factors = np.empty_like(numbers), narrowed(np.array([factor]))
    with np.errstate(over="ignore"):
        scale(numbers, factors, scaled, hard_to_scale(numbers))
        assert are_equal(scaled, narrowed(widened(numbers) * np.float32(factor)))


@pytest.mark.parametrize("is_row", [True, False])
def test_factors_of_rows_and_columns_scale_zeros_too(is_row: bool) -> None:
    array = narrowed(np.array([[1.5, -3.0, 0.0], [-0.0, 1e-39, 2.0]]))
    factors = narrowed(np.array([2.0, -0.5] if is_row else [2.0, -0.5, 1.0]))
    across = factors[:, None] if is_row else factors
    scaled = np.empty_like(array)
    scale(array, across, scaled, hard_to_scale(array))
    assert are_equal(scaled, narrowed(widened(array) * widened(across)))


def test_few_numbers_are_hard_to_scale() -> None:
    numbers = narrowed(np.array([1.0, 0.0, -2.0, 1e-39, -1.8e-38, 3e38, np.inf, 0.25]))
    assert hard_to_scale(numbers)[0].tolist() == [1, 3, 4, 5, 6]


def test_equal_bits_are_equal_numbers() -> None:
    one, other = (narrowed(np.array([1.0, number])) for number in (2.0, 2.5))
    assert are_equal(one, one.copy())
    assert not are_equal(one, other)
    assert not are_equal(np.zeros(2), np.ones(2))


@pytest.mark.parametrize("dtype", [BF16, np.dtype(np.float16), np.dtype(np.float64)])
def test_nan_fills_any_type(dtype: "np.dtype[np.generic]") -> None:
    array = np.zeros(3, dtype)
    fill_with_nan(array)
    assert np.isnan(array.astype(np.float64)).all()


@pytest.mark.drawn(2)
@pytest.mark.parametrize("layout", ["nn", "nt", "tn"])
def test_without_ml_dtypes_the_same_inputs_are_drawn_and_compared(layout: str) -> None:
    from tuner.core.problem import Matmul
    from tuner.payload.reference import draw, draw_base

    problem = Matmul(9, 7, 33, dtype="bf16", layout=layout, epilogue="bias_relu", output="bf16")
    rng = np.random.default_rng(5)
    inputs = draw(problem, draw_base(problem, rng), rng)
    program = [sys.executable, "-c", WITHOUT.replace("LAYOUT", layout)]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    drawn, is_right, wrong = done.stdout.splitlines()
    assert drawn == str([array.view(np.uint16).tolist() for array in inputs.arrays])
    assert is_right == "True"
    assert wrong.startswith("1 of 63 elements are wrong;")


@pytest.mark.parametrize("dtype", [BF16, np.dtype(np.float32), np.dtype(np.int32)])
def test_what_is_filled_with_nan_is_reported_from_what_is_written(dtype: "np.dtype[Any]") -> None:
    array = np.zeros(3, dtype)
    fill_with_nan(array)
    assert is_nan(array).all()
    fill_with(array[1:2], 1)
    assert is_nan(array).tolist() == [True, False, True]


def test_ones_are_ones_in_every_type() -> None:
    for dtype in (BF16, np.dtype(np.float32), np.dtype(np.float16), np.dtype(np.int32)):
        array = np.zeros(3, dtype)
        fill_with(array, 1)
        assert widened(array).tolist() == [1.0, 1.0, 1.0]
