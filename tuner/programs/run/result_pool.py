"""Arrays for the results of a program, used again when nobody holds them: fresh pages cost time.

An array is in use while there is a reference to it, to a view of it, or to a tensor that shares its memory.
"""

import ctypes
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

ALIGNMENT_BYTES = 64
POOL_LIMIT = 4  # sets of results that are kept; a caller that holds more gets new ones

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class ArrayType:
    """Shape and numpy type of a result."""

    shape: tuple[int, ...]
    dtype: "np.dtype[Any]"


class ResultSet:
    """The results of one call: arrays, and the frame with their addresses that the code takes.

    A caller gets the arrays, never the tuple: a reference to the tuple is not seen.
    """

    def __init__(self, types: Sequence[ArrayType], arguments: int, last: tuple[int, ...]) -> None:
        """Allocates arrays that begin at multiples of 64 bytes, and the frame.

        The frame has ``arguments`` addresses that the caller writes, those of the results, and ``last``.
        """
        # numpy makes the owners, not ``arrays``, the base of a caller's views
        owners = tuple(np.empty(_bytes(kind) + ALIGNMENT_BYTES, np.uint8) for kind in types)
        self.arrays: tuple[Array, ...] = tuple(
            _aligned(owner, kind) for owner, kind in zip(owners, types, strict=True)
        )
        addresses = (*[0] * arguments, *[each.ctypes.data for each in self.arrays], *last)
        self.frame = (ctypes.c_uint64 * len(addresses))(*addresses)
        self.address = ctypes.addressof(self.frame)
        self._watched = [*self.arrays, *owners]
        del owners
        self._free_counts = [*map(sys.getrefcount, self._watched)]

    @property
    def is_free(self) -> bool:
        """Returns whether nobody else has a reference to an array, or to memory of one."""
        return [*map(sys.getrefcount, self._watched)] == self._free_counts


class ResultPool:
    """Gives arrays for the results of a call. Calls of one pool must not overlap."""

    def __init__(self, types: Sequence[ArrayType], arguments: int, last: tuple[int, ...]) -> None:
        """Takes what each ``ResultSet`` takes. Arrays are made when they are needed."""
        self._of = (tuple(types), arguments, last)
        self._sets: list[ResultSet] = []

    def take(self) -> ResultSet:
        """Returns results that nobody holds, or new ones. Their contents are not defined."""
        for each in self._sets:
            if each.is_free:
                return each
        made = ResultSet(*self._of)
        self._sets = [made, *self._sets[: POOL_LIMIT - 1]]
        return made


def aligned_bytes(size: int) -> Array:
    """Returns an array of bytes that begins at a multiple of 64 bytes."""
    owner = np.empty(size + ALIGNMENT_BYTES, np.uint8)
    return _aligned(owner, ArrayType((size,), owner.dtype))


def _bytes(kind: ArrayType) -> int:
    return prod(kind.shape) * kind.dtype.itemsize


def _aligned(owner: Array, kind: ArrayType) -> Array:
    start = -owner.ctypes.data % ALIGNMENT_BYTES
    return owner[start : start + _bytes(kind)].view(kind.dtype).reshape(kind.shape)
