"""Checks of the arrays that a tuned kernel is called with: their number, shapes and types."""

from typing import Any

import numpy as np

from tuner.core.errors import UsageError
from tuner.core.problem import Problem
from tuner.payload.reference import NUMPY_DTYPES, output_dtype

LOAD_AGAIN = "tuner.load_best(problem)"  # in another process
Expected = tuple[str, tuple[int, ...], "np.dtype[Any]"]  # name, shape, type


def expected_inputs(problem: Problem) -> tuple[Expected, ...]:
    """Returns (name, shape, dtype) of each input array of a problem's kernel: "a", "b"[, "bias"].

    Shapes are those that the problem's layout stores: a transposed A or B has its stored shape.
    """
    dtype = NUMPY_DTYPES[problem.dtype]
    a = ("a", problem.a_shape, dtype)
    b = ("b", problem.b_shape, dtype)
    bias = (("bias", (problem.sizes[1],), output_dtype(problem)),) if problem.epilogue == "bias_relu" else ()
    return (a, b, *bias)


def expected_output(problem: Problem) -> Expected:
    """Returns (name, shape, dtype) of the output array of a problem's kernel, whose name is "out"."""
    return ("out", problem.c_shape, output_dtype(problem))


def require_inputs(problem: Problem, given: int) -> None:
    """Raises UsageError where ``given``, a number of input arrays, is not the number that the problem has."""
    names = [name for name, _, _ in expected_inputs(problem)]
    if given != len(names):
        raise UsageError(f"{problem.key}: found {given} arrays, allowed {', '.join(names)}")


def require_type(expected: Expected, shape: tuple[int, ...], dtype: "np.dtype[Any]") -> None:
    """Raises UsageError for an array whose ``shape`` or ``dtype`` is not the expected one.

    ``expected``: (name, shape, dtype). The message says how to convert an array of the expected shape, or how
    to transpose one whose last two sizes are exchanged.
    """
    name, wanted_shape, wanted_dtype = expected
    if shape != wanted_shape or dtype != wanted_dtype:
        raise UsageError(
            f"{name}: found {dtype} of shape {shape}, allowed {wanted_dtype} of shape {wanted_shape}; "
            f"{_remedy(expected, shape)}"
        )


def require_numpy(expected: Expected, found: object) -> None:
    """Raises UsageError for an object that is no numpy array, or a masked one: kernels ignore the mask.

    ``expected``: (name, shape, dtype), for the message; the shape and dtype of ``found`` are not checked.
    """
    name, _, dtype = expected
    if isinstance(found, np.ma.MaskedArray):
        raise UsageError(f"{name}: masked arrays are not supported: pass its .data or .filled()")
    if not isinstance(found, np.ndarray):
        remedy = f"convert it: np.asarray({name}, {str(dtype)!r})"
        raise UsageError(f"{name}: found {type(found).__name__}, allowed a numpy array; {remedy}")


def require_row_major(expected: Expected, strides: tuple[int, ...], *, is_row_major: bool) -> None:
    """Raises UsageError unless ``is_row_major``, which the caller found out: an array must be C-contiguous.

    ``expected`` (name, shape, dtype) and ``strides``, in bytes, are used in the message only.
    """
    name, shape, dtype = expected
    if not is_row_major:
        remedy = (
            f"make it: np.empty({shape}, {str(dtype)!r})"
            if name == "out"
            else f"copy it: np.ascontiguousarray({name})"
        )
        raise UsageError(f"{name}: found strides {strides}, allowed a C-contiguous array; {remedy}")


def _remedy(expected: Expected, shape: tuple[int, ...]) -> str:
    """Returns the hint for an array whose shape or type is not the expected one."""
    name, wanted_shape, wanted_dtype = expected
    if shape == wanted_shape:
        return f"convert it: {name}.astype({str(wanted_dtype)!r})"
    if shape == (*wanted_shape[:-2], *wanted_shape[:-3:-1]):
        turned = f"{name}.T" if len(shape) == 2 else f"{name}.swapaxes(-1, -2)"
        return f"transpose it: np.ascontiguousarray({turned}), or tune a layout that stores it so"
    return "a kernel is of one shape: load the best of this one"
