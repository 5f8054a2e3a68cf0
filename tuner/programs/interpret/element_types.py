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
    """The numpy form of an MLIR number or vector type: an element of a memref, or a value of one lane."""

    dtype: DType
    shape: tuple[int, ...] = ()  # shape of the vector; () for a number

    @property
    def name(self) -> str:
        """Returns the MLIR name of the number's (a vector's elements') type: ``f32``; ``i64`` for index."""
        return next(name for name, dtype in DTYPES.items() if dtype == self.dtype)

    @cached_property
    def offsets_bytes(self) -> Array:
        """Returns the byte offset of each number in an element, as an array of the vector's shape.

        As in code compiled by LLVM, each innermost row of a vector is padded to a power of two of bytes.
        """
        offsets = np.zeros(self.shape, np.int64)
        for axis, size in enumerate(self.shape):
            step = self.dtype.itemsize if axis == len(self.shape) - 1 else self._row_step(axis)
            offsets += (np.arange(size) * step).reshape(-1, *[1] * (len(self.shape) - 1 - axis))
        return offsets

    @cached_property
    def size_bytes(self) -> int:
        """Returns the distance in bytes between consecutive elements of a memref, with a vector's padding."""
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
    """Converts an MLIR number or vector type to an ElementType.

    Raises UnknownTypeError for a scalable vector and for a type that numpy cannot represent.
    """
    if isinstance(kind, ir.VectorType):
        if kind.scalable:
            raise UnknownTypeError(str(kind))
        return ElementType(dtype_of(kind.element_type), tuple(kind.shape))
    return ElementType(dtype_of(kind))


def dtype_of(kind: Type) -> DType:
    """Returns the numpy dtype of an MLIR number type. Raises UnknownTypeError if there is none."""
    dtype = DTYPES.get(str(kind))
    if dtype is None:
        raise UnknownTypeError(str(kind))
    return dtype


def signed(values: Array) -> Array:
    """Returns integers as signed integers: i1 (numpy bool) becomes int8, where true is -1.

    Other types are already signed and are returned unchanged.
    """
    return -values.view(np.int8) if values.dtype == BOOL else values


def unsigned(values: Array) -> Array:
    """Returns the same bits as unsigned integers of the same width; i1 (numpy bool) becomes uint8, 0 or 1."""
    return values.view(np.uint8) if values.dtype == BOOL else values.view(f"u{values.dtype.itemsize}")


def to_integer(values: Array, dtype: DType) -> Array:
    """Converts integers to another integer type: truncates, or extends.

    Signed values are sign-extended, unsigned values zero-extended. For i1 (numpy bool) the lowest bit
    remains.
    """
    if dtype == BOOL:
        return (values & 1).astype(bool)
    return values.astype(dtype, copy=False)
