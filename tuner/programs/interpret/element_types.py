"""MLIR's numbers and vectors as numpy types, and their layout in the memory of compiled code."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tuner.core.numpy_types import DTYPES, DType
from tuner.mlir.bindings import Type, ir

Array: TypeAlias = npt.NDArray[Any]
BOOL = DTYPES["i1"]
INDEX = DTYPES["index"]


class UnknownTypeError(ValueError):
    """An MLIR type for which the interpreter has no numpy type."""


@dataclass(frozen=True)
class ElementType:
    """A number, or a vector of numbers, as an element of memory or as a value of one lane."""

    dtype: DType
    shape: tuple[int, ...] = ()  # shape of the vector; () for a number

    @property
    def name(self) -> str:
        """Returns the MLIR name of the number type."""
        return next(name for name, dtype in DTYPES.items() if dtype == self.dtype)

    @cached_property
    def offsets_bytes(self) -> Array:
        """Returns each number's byte offset in an element; vector rows are padded to powers of two."""
        offsets = np.zeros(self.shape, np.int64)
        for axis, size in enumerate(self.shape):
            step = self.dtype.itemsize if axis == len(self.shape) - 1 else self._row_step(axis)
            offsets += (np.arange(size) * step).reshape(-1, *[1] * (len(self.shape) - 1 - axis))
        return offsets

    @cached_property
    def size_bytes(self) -> int:
        """Returns the distance in bytes between consecutive elements of a memref."""
        if not self.shape:
            return self.dtype.itemsize
        return self.shape[0] * self._row_step(0) if len(self.shape) > 1 else self._row_bytes

    @property
    def _row_bytes(self) -> int:
        """Returns LLVM's size of a one-dimensional vector: its bytes, rounded up to a power of two."""
        return 1 << max(self.shape[-1] * self.dtype.itemsize - 1, 0).bit_length()

    def _row_step(self, axis: int) -> int:
        return math.prod(self.shape[axis + 1 : -1]) * self._row_bytes


def element_type(kind: Type) -> ElementType:
    """Returns the numpy type of a number or a vector. Raises UnknownTypeError."""
    if isinstance(kind, ir.VectorType):
        if kind.scalable:
            raise UnknownTypeError(str(kind))
        return ElementType(dtype_of(kind.element_type), tuple(kind.shape))
    return ElementType(dtype_of(kind))


def dtype_of(kind: Type) -> DType:
    """Returns the numpy type of a number. Raises UnknownTypeError."""
    dtype = DTYPES.get(str(kind))
    if dtype is None:
        raise UnknownTypeError(str(kind))
    return dtype


def signed(values: Array) -> Array:
    """Returns integers as signed integers: a true i1 becomes -1."""
    return -values.view(np.int8) if values.dtype == BOOL else values


def unsigned(values: Array) -> Array:
    """Returns the bits of integers as unsigned integers."""
    return values.view(np.uint8) if values.dtype == BOOL else values.view(f"u{values.dtype.itemsize}")


def to_integer(values: Array, dtype: DType) -> Array:
    """Returns integers truncated or sign-extended to another integer type."""
    if dtype == BOOL:
        return (values & 1).astype(bool)
    return values.astype(dtype, copy=False)
