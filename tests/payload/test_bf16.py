import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.payload.bf16 import BF16, fill_with_nan, fill_with_one, is_nan, multiply, narrowed, widened

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


@pytest.mark.parametrize("dtype", [BF16, np.dtype(np.float32)])
def test_products_by_powers_of_two_are_exact(dtype: "np.dtype[np.generic]") -> None:
    array, factors = np.array([[1.5, -3.0]]).astype(dtype), np.array([[2.0], [-0.5]]).astype(dtype)
    out = np.empty((2, 2), dtype)
    multiply(array, factors, out)
    assert out.astype(np.float32).tolist() == [[3.0, -6.0], [-0.75, 1.5]]


@pytest.mark.parametrize("dtype", [BF16, np.dtype(np.float16), np.dtype(np.float64)])
def test_nan_fills_any_type(dtype: "np.dtype[np.generic]") -> None:
    array = np.zeros(3, dtype)
    fill_with_nan(array)
    assert np.isnan(array.astype(np.float64)).all()


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
    fill_with_one(array[1:2])
    assert is_nan(array).tolist() == [True, False, True]


def test_ones_are_ones_in_every_type() -> None:
    for dtype in (BF16, np.dtype(np.float32), np.dtype(np.float16), np.dtype(np.int32)):
        array = np.zeros(3, dtype)
        fill_with_one(array)
        assert widened(array).tolist() == [1.0, 1.0, 1.0]
