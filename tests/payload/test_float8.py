"""8-bit floats: draws of which halves and doubles are numbers too, and a machine without their package."""

import numpy as np
import pytest

from tuner.core.errors import UsageError
from tuner.core.fusions import FLOAT8S
from tuner.core.numpy_types import FLOAT8_STEPS
from tuner.core.problem import Matmul
from tuner.payload import reference
from tuner.payload.reference import draw_base, round_inputs

LARGEST = 16.0  # of what is drawn, by far


@pytest.mark.parametrize("dtype", FLOAT8S)
def test_halves_and_doubles_of_what_is_drawn_are_exact(dtype: str) -> None:
    numbers = np.arange(2**8, dtype=np.uint8).view(reference.NUMPY_DTYPES[dtype]).astype(np.float32)
    numbers = round_inputs(numbers[np.abs(numbers) <= LARGEST], dtype).astype(np.float32)
    for factor in (0.5, 2.0):
        scaled = numbers * np.float32(factor)
        assert np.array_equal(scaled.astype(reference.NUMPY_DTYPES[dtype]).astype(np.float32), scaled)


@pytest.mark.parametrize("dtype", FLOAT8S)
def test_a_finer_step_would_have_halves_that_are_none(dtype: str) -> None:
    half = np.float32(1.0) / FLOAT8_STEPS[dtype] / 4
    assert half.astype(reference.NUMPY_DTYPES[dtype]).astype(np.float32) != half


@pytest.mark.parametrize(("dtype", "number", "rounded"), [("e4m3", 1.0625, 1.0), ("e5m2", 1.375, 1.5)])
def test_draws_are_rounded_to_nearest_ties_to_even(dtype: str, number: float, rounded: float) -> None:
    found = round_inputs(np.array([number, -number], np.float32), dtype)
    assert found.astype(np.float32).tolist() == [rounded, -rounded]


def test_without_their_package_none_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(reference.NUMPY_DTYPES, "e4m3")
    with pytest.raises(
        UsageError,
        match=r"^dtype: e4m3 needs the package ml_dtypes, which is missing; pip install ml_dtypes$",
    ):
        draw_base(Matmul(8, 8, 8, "e4m3"), np.random.default_rng(0))
