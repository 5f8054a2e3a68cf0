import numpy as np
import pytest

from tuner.core.errors import UsageError
from tuner.core.problem import Matmul
from tuner.targets.call_arrays import expected_inputs, require_inputs, require_type

PROBLEM = Matmul(4, 8, 2)
A = expected_inputs(PROBLEM)[0]  # 4x2, float32


@pytest.mark.parametrize(
    ("shape", "dtype", "remedy"),
    [
        ((4, 2), np.float64, "convert it: a.astype('float32')"),
        ((2, 4), np.float32, "transpose it: np.ascontiguousarray(a.T), or tune a layout that stores it so"),
        ((9, 9), np.float32, "a kernel is of one shape: load the best of this one"),
    ],
)
def test_an_array_that_does_not_fit_is_refused_with_the_remedy(
    shape: tuple[int, ...], dtype: type, remedy: str
) -> None:
    with pytest.raises(UsageError) as caught:
        require_type(A, shape, np.dtype(dtype))
    said = f"a: found {np.dtype(dtype)} of shape {shape}, allowed float32 of shape (4, 2); {remedy}"
    assert str(caught.value) == said


def test_an_array_that_fits_is_taken() -> None:
    require_type(A, (4, 2), np.dtype(np.float32))


def test_a_wrong_number_of_arrays_is_refused() -> None:
    with pytest.raises(UsageError, match=r"found 3 arrays, allowed a, b$"):
        require_inputs(PROBLEM, 3)
