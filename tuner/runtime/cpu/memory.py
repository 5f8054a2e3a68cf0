"""Arrays for kernels: aligned, on small pages, or between guard bands that show writes out of bounds."""

import ctypes
import math
import mmap
from typing import Any

import numpy as np
import numpy.typing as npt

from tuner.core.numpy_types import fill_with, fill_with_nan

ALIGNMENT_BYTES = 64  # a cache line and an AVX-512 register
GUARD_BYTES = 4096  # before and after C: an out-of-bounds vector or tile row falls inside
GUARD_BYTE = 0xA5
# mallopt(3)
M_TRIM_THRESHOLD = -1
M_MMAP_THRESHOLD = -3
KEEP_BYTES = 32 * 2**20  # the largest mmap threshold that glibc accepts
_NO_BYTES = ctypes.c_char * 0


def keep_freed_memory() -> None:
    """Makes malloc keep freed memory, so that new buffers below 32 MiB cause no page faults."""
    libc = ctypes.CDLL(None)
    libc.mallopt(M_MMAP_THRESHOLD, KEEP_BYTES)
    libc.mallopt(M_TRIM_THRESHOLD, 2**30)


def placed_copy(array: npt.NDArray[Any], offset: int = 0) -> npt.NDArray[Any]:
    """Returns a C-contiguous copy of an array that lies ``offset`` bytes past a cache line."""
    copy = placed_empty(array.shape, array.dtype, offset)
    copy[...] = array
    return copy


def address_of(array: npt.NDArray[Any]) -> int:
    """Returns the address of an array's first element."""
    try:
        return ctypes.addressof(_NO_BYTES.from_buffer(array.data))
    except (TypeError, ValueError, BufferError):  # read-only, or transposed
        return int(array.ctypes.data)  # three times as long


def placed_empty(shape: tuple[int, ...], dtype: np.dtype[Any], offset: int = 0) -> npt.NDArray[Any]:
    """Returns an uninitialized C-contiguous array that lies ``offset`` (0 to 63) bytes past a cache line."""
    size = int(np.prod(shape)) * dtype.itemsize
    memory = np.empty(size + 2 * ALIGNMENT_BYTES, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT_BYTES + offset
    return memory[start : start + size].view(dtype).reshape(shape)


class GuardedArray:
    """An array between guard bands that show writes out of bounds; it is filled with NaN at first.

    Where its rows lie apart, the elements between them are guarded as well.
    """

    def __init__(
        self,
        memory: npt.NDArray[np.uint8],  # the bytes of the array with both guard bands
        start: int,  # of the array, in bytes
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        strides: tuple[int, ...] | None = None,  # elements; None: row-major
    ) -> None:
        end = start + _span(shape, strides) * dtype.itemsize
        self.memory = memory
        self.elements = memory[start:end].view(dtype)  # from the first to the last one, with all between rows
        steps = None if strides is None else [stride * dtype.itemsize for stride in strides]
        self.array: npt.NDArray[Any] = np.ndarray(shape, dtype, memory, start, steps)
        self._before = memory[:start]
        self._after = memory[end:]
        self._has_gaps = self.array.size < self.elements.size
        self.poison()

    @classmethod
    def placed(
        cls,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        offset: int = 0,
        strides: tuple[int, ...] | None = None,  # elements; None: row-major
    ) -> "GuardedArray":
        """Returns an array ``offset`` bytes past a cache line, between guard bands of 4096 bytes each."""
        size = _span(shape, strides) * dtype.itemsize
        memory = placed_empty((size + 2 * GUARD_BYTES,), np.dtype(np.uint8), offset)
        return cls(memory, GUARD_BYTES, shape, dtype, strides)

    def poison(self) -> None:
        """Fills the array with NaN (integers: with the least number) and the guard bands with GUARD_BYTE."""
        fill_with_nan(self.elements)
        self._guard()

    def fill_with(self, number: int) -> None:
        """Fills the array with ``number`` in place of NaN, and the guard bands with GUARD_BYTE."""
        fill_with(self.elements, number)
        self._guard()

    def fill_from(self, numbers: npt.NDArray[Any]) -> None:
        """Fills the array with as many numbers as ``elements`` has, and the guard bands with GUARD_BYTE."""
        self.elements[...] = numbers.reshape(-1)
        self._guard()

    def stray_bytes(self) -> int:
        """Returns how many bytes outside of the array changed since it was filled."""
        stray = self.band_bytes()
        if self._has_gaps:
            now = self._without_array()
            stray += int(np.count_nonzero(self._gaps.view(np.uint8) != now.view(np.uint8)))
        return stray

    def band_bytes(self) -> int:
        """Returns how many bytes of the guard bands differ from GUARD_BYTE."""
        bands = (self._before, self._after)
        return sum(int(np.count_nonzero(band != GUARD_BYTE)) for band in bands)

    def _guard(self) -> None:
        self._before[:] = GUARD_BYTE
        self._after[:] = GUARD_BYTE
        if self._has_gaps:
            self._gaps = self._without_array()

    def _without_array(self) -> npt.NDArray[Any]:
        """Returns a copy of all elements, guard bands included, with ones in place of the array's own."""
        copy = self.elements.copy()
        view = np.ndarray(self.array.shape, copy.dtype, copy.view(np.uint8), 0, self.array.strides)
        view[...] = np.ones((), copy.dtype)
        return copy


def _span(shape: tuple[int, ...], strides: tuple[int, ...] | None) -> int:
    """Returns the elements of memory from an array's first to its last, gaps included; None: row-major."""
    if strides is None:
        return math.prod(shape)
    return 1 + sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))


# Copies of arrays on pages of the smallest size, the slowest place that a caller's arrays may have.
#
# numpy asks for large pages for arrays of 4 MiB and more, and gets them or not, from one allocation to the
# next. A kernel that reads far apart is up to 1.4 times as fast on them: what is fastest on small pages is a
# safe choice.


def copy_on_small_pages(array: npt.NDArray[Any], offset: int = 0) -> npt.NDArray[Any]:
    """Returns a C-contiguous copy ``offset`` bytes past a page's start, on small pages if possible."""
    memory = mmap.mmap(-1, offset + array.nbytes)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    copy = np.frombuffer(memory, array.dtype, array.size, offset).reshape(array.shape)
    copy[...] = array
    return copy
