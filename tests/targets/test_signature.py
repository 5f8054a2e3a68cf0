"""Arrays of a caller that do not fit a kernel are refused with the remedy."""

import re

import numpy as np
import pytest

from tuner.core.errors import UsageError
from tuner.core.matmul import Matmul
from tuner.targets.signature import KernelSignature

PROBLEM = Matmul(4, 8, 2)
SIGNATURE = KernelSignature.of(PROBLEM)
A = SIGNATURE.inputs[0]  # 4x2, float32


@pytest.mark.parametrize(
    ("shape", "dtype", "remedy"),
    [
        ((4, 2), np.float64, "convert it: a.astype('float32')"),
        ((2, 4), np.float32, "transpose it: np.ascontiguousarray(a.T), or tune a layout that stores it so"),
        ((9, 9), np.float32, "a kernel is of one shape: load the best of this one"),
    ],
)
def test_an_array_that_does_not_fit_is_refused(shape: tuple[int, ...], dtype: type, remedy: str) -> None:
    said = f"a: found {np.dtype(dtype)} of shape {shape}, allowed float32 of shape (4, 2); {remedy}"
    with pytest.raises(UsageError, match=f"^{re.escape(said)}$"):
        A.require_type(shape, np.dtype(dtype))


def test_an_array_that_fits_is_taken_and_a_wrong_number_of_arrays_refused() -> None:
    A.require_type((4, 2), np.dtype(np.float32))
    with pytest.raises(UsageError, match=r"found 3 arrays, allowed a, b$"):
        SIGNATURE.require_call(3, None)
