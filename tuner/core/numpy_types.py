"""The numpy type of each element type, and operations on bf16 and 8-bit floats that numpy lacks.

Some types need the package ml_dtypes; without it, bf16 numbers are held as their bits.
"""

from types import ModuleType
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from tuner.core.dtypes import NUMBER_TYPES
from tuner.core.errors import UsageError

try:  # a machine that only measures may have nothing but numpy
    import ml_dtypes

    PACKAGES: tuple[ModuleType, ...] = (np, ml_dtypes)
except ImportError:
    PACKAGES = (np,)

DType: TypeAlias = np.dtype[np.generic]
Array = npt.NDArray[Any]
F32: Final = np.dtype(np.float32)
F64: Final = np.dtype(np.float64)
BYTE_BITS: Final = 8
WORD_BITS: Final = 32
LONG_BITS: Final = 64
STICKY_SHIFT: Final = 16  # so many lowest bits of a large integer become one, set where one of them is
STICKY_FROM: Final = 2.0**40  # size of large integers, of which floats of 16 bits drop the lowest 17 bits
Places = tuple[npt.NDArray[np.int64], ...]  # indices of numbers, an array for each dimension
DROPPED_BITS: Final = 16  # of the mantissa of an f32
NAN_BITS: Final = 0x7FC0
ONE_BITS: Final = 0x3F80
MANTISSA_BITS: Final = 7
LEAST_SCALED: Final = 2 << MANTISSA_BITS  # magnitudes from here on are normal after a division by two,
END_OF_SCALED: Final = 0xFE << MANTISSA_BITS  # and those below here finite after a multiplication by two
# Steps per 1: inputs are multiples of the smallest step whose half is a number of the type as well.
FLOAT8_STEPS: Final = {"e4m3": np.float32(2.0**8), "e5m2": np.float32(2.0**15)}
# Tensor cores keep about 14 bits of a sum of such products, though it is an f32: of H800, DeepSeek-V3
# Technical Report, https://arxiv.org/abs/2412.19437, section 3.3.2.
FLOAT8_SUM_ROUNDING: Final = 2.0**-14


def _type_of(name: str, numpy_name: str) -> Any:
    known = (getattr(package, numpy_name, None) for package in PACKAGES)
    # Without ml_dtypes bf16 is its bits, uint16: no other element type is held as uint16.
    return next((type_ for type_ in known if type_ is not None), np.uint16 if name == "bf16" else None)


# MLIR type -> numpy type, of those that an installed package has
DTYPES: dict[str, DType] = {
    name: np.dtype(type_)
    for name, number in NUMBER_TYPES.items()
    if (type_ := _type_of(name, number.numpy_name)) is not None
}

BF16: "np.dtype[Any]" = DTYPES["bf16"]


# bf16 numbers as bits: the upper half of an f32, with or without the package ml_dtypes.
# Unwritten elements are filled with NaN; those of integers, which have no NaN, with the least number.


def narrowed(numbers: Array) -> Array:
    """Returns numbers as bf16, rounded from f32 to nearest, ties to even. A NaN may become a number."""
    bits = np.ascontiguousarray(numbers, dtype=np.float32).view(np.uint32)
    odd = bits >> DROPPED_BITS & 1
    rounded = bits + np.uint32((1 << DROPPED_BITS - 1) - 1) + odd
    return (rounded >> DROPPED_BITS).astype(np.uint16).view(BF16)


def widened(array: Array) -> Array:
    """Returns a bf16 array converted to f32, which is exact; returns an array of another type unchanged."""
    if array.dtype != BF16:
        return array
    return (array.view(np.uint16).astype(np.uint32) << DROPPED_BITS).view(np.float32)


def wide(numbers: Array) -> npt.NDArray[np.float64]:
    """Returns numbers of any type in float64."""
    return widened(numbers).astype(np.float64)


def hard_to_scale(array: Array) -> Places:
    """Returns the indices of numbers of a bf16 array that ``scale`` cannot scale by their exponent.

    One array of indices per dimension, as ``np.nonzero`` returns. The numbers are zeros, infinities, NaN, and
    numbers whose half or double is not normal.
    """
    magnitudes = array.view(np.uint16) & 0x7FFF
    return np.nonzero((magnitudes < LEAST_SCALED) | (magnitudes >= END_OF_SCALED))


def scale(array: Array, factors: Array, out: Array, hard: Places) -> None:
    """Writes the elementwise product of a bf16 array and factors, each +-1/2, +-1 or +-2, to ``out``.

    Adds to exponents in place of multiplying. ``hard``: the result of ``hard_to_scale`` for the array; the
    numbers at these indices are multiplied.
    """
    change = factors.view(np.uint16) - np.uint16(ONE_BITS)  # of exponent and sign; added modulo 2**16
    np.add(array.view(np.uint16), change, out=out.view(np.uint16))
    if hard[0].size:
        out[hard] = narrowed(widened(array[hard]) * widened(np.broadcast_to(factors, array.shape)[hard]))


def are_equal(array: Array, other: Array) -> bool:
    """Returns whether two arrays of one shape are equal, number by number; of two bf16 arrays, bit by bit.

    So of bf16, NaN with equal bits are equal, and -0 is not 0; comparing bits is ten times as fast.
    """
    if array.dtype == BF16 and other.dtype == BF16:
        array = array.view(np.uint16)
        other = other.view(np.uint16)
    return np.array_equal(array, other)


def fill_with_nan(array: Array) -> None:
    """Fills an array in place with NaN; signed integers, which have no NaN, with their smallest number."""
    if array.dtype == BF16:
        array.view(np.uint16).fill(NAN_BITS)
    elif array.dtype.kind == "i":
        array.fill(np.iinfo(array.dtype).min)
    else:
        array.fill(np.nan)


def fill_with(array: Array, number: int) -> None:
    """Fills an array of any type in place with a whole number that the type can represent exactly."""
    if array.dtype == BF16:
        array.view(np.uint16).fill(narrowed(np.full(1, number)).view(np.uint16)[0])
    else:
        array.fill(number)


def is_nan(array: Array) -> npt.NDArray[np.bool_]:
    """Returns a boolean array: True for NaN, in an array of signed integers for their smallest number."""
    if array.dtype.kind == "i":
        return np.asarray(array == np.iinfo(array.dtype).min)
    return np.asarray(np.isnan(widened(array)))


# Conversions of numbers between types, as programs and their references compute them.
#
# To a float they round once, to nearest, ties to even. A float that is outside of an integer's range becomes
# what eager PyTorch gives on x86, where MLIR gives no value: the processor converts to a signed integer of 32
# or 64 bits, which is the least one for NaN and for numbers outside of its range; its lowest bits are kept.
# Where PyTorch's vectors and its last, single elements differ, for unsigned integers of 32 bits, that is the
# single elements' value.


def converted_bits(bits: int, *, is_signed: bool, is_double: bool) -> int:
    """Returns the bits, 32 or 64, of the signed integer to which a float is converted first.

    ``bits``: of the integer that is wanted; ``is_double``: whether the float is a float64.
    """
    is_long_byte = bits == BYTE_BITS and is_double
    if bits > WORD_BITS or (not is_signed and (bits == WORD_BITS or is_long_byte)):
        return LONG_BITS
    return WORD_BITS


def rounded_to_zero(values: Array, bits: int, *, is_signed: bool, is_double: bool) -> Array:
    """Converts floats to integers of ``bits`` (1 to 64) bits, rounded towards zero, as an x86 processor does.

    Returns int64 of which only the lowest ``bits`` bits are meaningful. The conversion goes by a signed
    integer of ``converted_bits``, whose least value stands for NaN and what it cannot hold; unsigned integers
    of 64 bits are converted in two halves. ``is_double``: whether the program's floats are f64.
    """
    numbers = values.astype(F64)
    converted = converted_bits(bits, is_signed=is_signed, is_double=is_double)
    if bits < LONG_BITS or is_signed:
        return _signed(numbers, converted)
    half = 2.0 ** (LONG_BITS - 1)
    lower = _signed(numbers, LONG_BITS)
    upper = _signed(numbers - half, LONG_BITS) ^ np.int64(-(2 ** (LONG_BITS - 1)))
    return np.where(numbers >= half, upper, lower)


def _signed(numbers: Array, bits: int) -> Array:
    with np.errstate(invalid="ignore"):
        is_inside = np.abs(numbers) < 2.0 ** (bits - 1)
    return np.where(is_inside, np.where(is_inside, numbers, 0.0).astype(np.int64), -(2 ** (bits - 1)))


def as_float(values: Array, dtype: DType) -> Array:
    """Returns numbers as floats of ``dtype``, rounded once; numpy and ml_dtypes round some numbers twice."""
    with np.errstate(over="ignore", invalid="ignore"):
        if dtype.itemsize > F32.itemsize // 2 or dtype == np.float16:
            return values.astype(dtype)
        if values.dtype.kind in "iu":
            values = _as_double(values)
        if values.dtype == F64:
            values = _rounded_to_odd(values)
        return values.astype(dtype)


def _as_double(values: Array) -> Array:
    """Returns integers as float64 that narrow floats round as the integers themselves: exact up to 2**40."""
    nearest = values.astype(F64)
    if values.itemsize < F64.itemsize:
        return nearest
    is_set = (values & values.dtype.type(2**STICKY_SHIFT - 1)) != 0
    large = ((values >> values.dtype.type(STICKY_SHIFT)) | is_set).astype(F64) * 2.0**STICKY_SHIFT
    return np.where(np.abs(nearest) > STICKY_FROM, large, nearest)


def _rounded_to_odd(values: Array) -> Array:
    """Returns float64 cut off to f32, with the lowest bit set where something was cut off."""
    nearest = np.ascontiguousarray(values.astype(F32))
    again = nearest.astype(F64)
    is_above = (np.abs(again) > np.abs(values)).astype(np.uint32)
    is_inexact = ((again != values) & ~np.isnan(values)).astype(np.uint32)
    bits: Array = (nearest.view(np.uint32) - is_above) | is_inexact
    return bits.view(F32)


def dtype_of(element: str) -> "np.dtype[np.generic]":
    """Returns the numpy type of an MLIR element type such as "f32"; raises UsageError for an unknown type."""
    if element not in DTYPES:
        raise UsageError(f"element type: found {element}, allowed {', '.join(DTYPES)}")
    return DTYPES[element]
