"""bf16 numbers as bits: the upper half of an f32, with or without the package ml_dtypes.

Unwritten elements are filled with NaN; those of integers, which have no NaN, with the least number.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tuner.core.numpy_types import DTYPES

Array = npt.NDArray[Any]

BF16: "np.dtype[Any]" = DTYPES["bf16"]
DROPPED_BITS: Final = 16  # of the mantissa of an f32
NAN_BITS: Final = 0x7FC0
ONE_BITS: Final = 0x3F80


def narrowed(numbers: Array) -> Array:
    """Returns numbers, first converted to f32, rounded to the nearest bf16, ties to even; NaN may be lost."""
    bits = np.ascontiguousarray(numbers, dtype=np.float32).view(np.uint32)
    odd = bits >> DROPPED_BITS & 1
    rounded = bits + np.uint32((1 << DROPPED_BITS - 1) - 1) + odd
    return (rounded >> DROPPED_BITS).astype(np.uint16).view(BF16)


def widened(array: Array) -> Array:
    """Returns a bf16 array converted to f32, which is exact; returns an array of another type unchanged."""
    if array.dtype != BF16:
        return array
    return (array.view(np.uint16).astype(np.uint32) << DROPPED_BITS).view(np.float32)


def multiply(array: Array, factors: Array, out: Array) -> None:
    """Writes the elementwise product of ``array`` and ``factors``, of the same type, to ``out``.

    Sizes are broadcast as in numpy. Products of bf16 are rounded to nearest.
    """
    if array.dtype != BF16:
        np.multiply(array, factors, out=out)
        return
    out[...] = narrowed(widened(array) * widened(factors))


def fill_with_nan(array: Array) -> None:
    """Fills an array in place with NaN; signed integers, which have no NaN, with their smallest number."""
    if array.dtype == BF16:
        array.view(np.uint16).fill(NAN_BITS)
    elif array.dtype.kind == "i":
        array.fill(np.iinfo(array.dtype).min)
    else:
        array.fill(np.nan)


def fill_with_one(array: Array) -> None:
    """Fills an array of any type in place with the number 1."""
    if array.dtype == BF16:
        array.view(np.uint16).fill(ONE_BITS)
    else:
        array.fill(1)


def is_nan(array: Array) -> npt.NDArray[np.bool_]:
    """Returns per element whether it is NaN, or in a signed integer array the smallest number.

    That is what ``fill_with_nan`` writes.
    """
    if array.dtype.kind == "i":
        return np.asarray(array == np.iinfo(array.dtype).min)
    return np.asarray(np.isnan(widened(array)))
