"""Arrays for kernels: aligned, between guard bands, in memory that the process keeps."""

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

from tuner.payload.bf16 import fill_with_nan, fill_with_one

ALIGNMENT_BYTES = 64  # a cache line and an AVX-512 register
GUARD_BYTES = 4096  # before and after C: an out-of-bounds vector or tile row falls inside
GUARD_BYTE = 0xA5
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # mallopt(3)
KEEP_BYTES = 32 * 2**20  # the largest mmap threshold that glibc accepts


def keep_freed_memory() -> None:
    """Makes malloc keep memory that this process frees, so that later allocations have no page faults.

    Holds for allocations below 32 MiB; larger ones are mapped anew. Without this, each call of a kernel has
    page faults in the packing buffers that it allocates.
    """
    libc = ctypes.CDLL(None)
    libc.mallopt(M_MMAP_THRESHOLD, KEEP_BYTES)
    libc.mallopt(M_TRIM_THRESHOLD, 2**30)


def placed_copy(array: npt.NDArray[Any], offset: int = 0) -> npt.NDArray[Any]:
    """Returns a C-contiguous copy of an array that lies ``offset`` bytes past a cache line."""
    copy = placed_empty(array.shape, array.dtype, offset)
    copy[...] = array
    return copy


def placed_empty(shape: tuple[int, ...], dtype: np.dtype[Any], offset: int = 0) -> npt.NDArray[Any]:
    """Returns an uninitialized C-contiguous array that lies ``offset`` bytes past a cache line.

    ``offset``: 0 to 63. A cache line has ALIGNMENT_BYTES (64).
    """
    size = int(np.prod(shape)) * dtype.itemsize
    memory = np.empty(size + 2 * ALIGNMENT_BYTES, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT_BYTES + offset
    return memory[start : start + size].view(dtype).reshape(shape)


class GuardedArray:
    """An array between two guard bands, to detect elements not written and writes out of bounds.

    The array lies ``offset`` bytes past a cache line.

    ``array`` is filled with NaN at first, of integers with the least number.
    """

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any], offset: int = 0) -> None:
        """Allocates the array and fills it with NaN."""
        size = int(np.prod(shape)) * dtype.itemsize
        self._memory = placed_empty((size + 2 * GUARD_BYTES,), np.dtype(np.uint8), offset)
        self.array = self._memory[GUARD_BYTES : GUARD_BYTES + size].view(dtype).reshape(shape)
        self.poison()

    @property
    def memory(self) -> npt.NDArray[np.uint8]:
        """Returns the bytes of the array with the guard band before and after it, 4096 bytes each."""
        return self._memory

    def poison(self) -> None:
        """Fills the array with NaN (integers: with the least number) and the guard bands with GUARD_BYTE."""
        self._memory[:] = GUARD_BYTE
        fill_with_nan(self.array)

    def fill_with_ones(self) -> None:
        """Fills the array with ones, which look like results, and the guard bands with GUARD_BYTE."""
        self._memory[:] = GUARD_BYTE
        fill_with_one(self.array)

    def stray_bytes(self) -> int:
        """Returns how many bytes of the guard bands differ from GUARD_BYTE: writes outside of the array."""
        before, after = self._memory[:GUARD_BYTES], self._memory[-GUARD_BYTES:]
        return int(np.count_nonzero(before != GUARD_BYTE) + np.count_nonzero(after != GUARD_BYTE))
