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
    """Returns numbers rounded to bf16, to nearest, ties to even; wrong for NaN."""
    bits = np.ascontiguousarray(numbers, dtype=np.float32).view(np.uint32)
    odd = bits >> DROPPED_BITS & 1
    rounded = bits + np.uint32((1 << DROPPED_BITS - 1) - 1) + odd
    return (rounded >> DROPPED_BITS).astype(np.uint16).view(BF16)


def widened(array: Array) -> Array:
    """Returns an array of bf16 as f32; an array of another type unchanged."""
    if array.dtype != BF16:
        return array
    return (array.view(np.uint16).astype(np.uint32) << DROPPED_BITS).view(np.float32)


def multiply(array: Array, factors: Array, out: Array) -> None:
    """Writes the product of an array of any type and factors of the same type to ``out``."""
    if array.dtype != BF16:
        np.multiply(array, factors, out=out)
        return
    out[...] = narrowed(widened(array) * widened(factors))


def fill_with_nan(array: Array) -> None:
    """Fills an array of floats with NaN, an array of integers with the type's least number."""
    if array.dtype == BF16:
        array.view(np.uint16).fill(NAN_BITS)
    elif array.dtype.kind == "i":
        array.fill(np.iinfo(array.dtype).min)
    else:
        array.fill(np.nan)


def fill_with_one(array: Array) -> None:
    """Fills an array of any type with 1."""
    if array.dtype == BF16:
        array.view(np.uint16).fill(ONE_BITS)
    else:
        array.fill(1)


def is_nan(array: Array) -> npt.NDArray[np.bool_]:
    """Returns, per element, whether it is NaN, or for integers the type's least number."""
    if array.dtype.kind == "i":
        return np.asarray(array == np.iinfo(array.dtype).min)
    return np.asarray(np.isnan(widened(array)))
