"""The one table of element types against numpy and ml_dtypes."""

import ml_dtypes
import numpy as np
import pytest

from tuner.core.element_types import NUMBER_TYPES, STORED, number_type
from tuner.core.numpy_types import DTYPES
from tuner.core.problem import INPUT_DTYPES


@pytest.mark.parametrize("name", NUMBER_TYPES)
def test_widths_are_those_of_numpy(name: str) -> None:
    assert DTYPES[name].itemsize == NUMBER_TYPES[name].bytes


@pytest.mark.parametrize("name", [name for name, each in NUMBER_TYPES.items() if each.epsilon])
def test_nothing_is_between_one_and_the_next_number(name: str) -> None:
    steps = 1.0 + NUMBER_TYPES[name].epsilon * np.array([0.0, 0.5, 1.0])  # ties go to even
    assert steps.astype(DTYPES[name]).astype(np.float64).tolist() == [1.0, 1.0, steps[2]]


def test_all_but_integers_are_floats() -> None:
    floats = {name for name, each in NUMBER_TYPES.items() if each.epsilon}
    assert floats == {name for name in NUMBER_TYPES if name.startswith(("f", "bf"))}


def test_each_dtype_of_a_problem_has_a_type_in_memory() -> None:
    assert {dtype: number_type(dtype).bytes for dtype in STORED} == {"tf32": 4, "e4m3": 1, "e5m2": 1}
    assert all(number_type(dtype).bytes for dtype in INPUT_DTYPES)
    assert DTYPES["bf16"] == np.dtype(ml_dtypes.bfloat16)
