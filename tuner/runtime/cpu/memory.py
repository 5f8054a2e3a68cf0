"""Arrays for kernels: aligned, on small pages, between guard bands, or between pages that fault."""

import ctypes
import mmap
import os
import weakref
from typing import Any, final

import numpy as np
import numpy.typing as npt

from tuner.core.numpy_types import fill_with, fill_with_nan

ALIGNMENT_BYTES = 64  # a cache line and an AVX-512 register
GUARD_BYTES = 4096  # before and after C: an out-of-bounds vector or tile row falls inside
GUARD_BYTE = 0xA5
# mallopt(3)
M_TRIM_THRESHOLD = -1
M_MMAP_THRESHOLD = -3
# Address space before and after an operand, without memory behind it: what is read or written there faults.
FAULTING_BYTES = 128 * 2**20
# mmap(2)
PROT_NONE = 0
PROT_READ = mmap.PROT_READ
PROT_READ_WRITE = mmap.PROT_READ | mmap.PROT_WRITE
MAP_FIXED = 0x10
MAP_NORESERVE = 0x4000
MADV_HUGEPAGE = 14  # madvise(2)
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
    """An array, filled with NaN at first, between guard bands that show writes out of bounds."""

    def __init__(self, memory: npt.NDArray[np.uint8], array: npt.NDArray[Any]) -> None:
        # the bytes of the array with both guard bands
        self.memory = memory
        self.array = array
        start = array.ctypes.data - memory.ctypes.data
        self._before = memory[:start]
        self._after = memory[start + array.nbytes :]
        self.poison()

    @classmethod
    def placed(cls, shape: tuple[int, ...], dtype: np.dtype[Any], offset: int = 0) -> "GuardedArray":
        """Returns an array ``offset`` bytes past a cache line, between guard bands of 4096 bytes each."""
        size = int(np.prod(shape)) * dtype.itemsize
        memory = placed_empty((size + 2 * GUARD_BYTES,), np.dtype(np.uint8), offset)
        return cls(memory, memory[GUARD_BYTES : GUARD_BYTES + size].view(dtype).reshape(shape))

    def poison(self) -> None:
        """Fills the array with NaN (integers: with the least number) and the guard bands with GUARD_BYTE."""
        self.memory[:] = GUARD_BYTE
        fill_with_nan(self.array)

    def fill_with(self, number: int) -> None:
        """Fills the array with ``number`` in place of NaN, and the guard bands with GUARD_BYTE."""
        self.memory[:] = GUARD_BYTE
        fill_with(self.array, number)

    def fill_from(self, numbers: npt.NDArray[Any]) -> None:
        """Fills the array with numbers of its shape and type, and the guard bands with GUARD_BYTE."""
        self._before[:] = GUARD_BYTE
        self._after[:] = GUARD_BYTE
        self.array[...] = numbers

    def stray_bytes(self) -> int:
        """Returns how many bytes of the guard bands differ from GUARD_BYTE: writes outside of the array."""
        bands = (self._before, self._after)
        return sum(int(np.count_nonzero(band != GUARD_BYTE)) for band in bands)


@final
class FaultingMemory:
    """Pages for one array, with 128 MiB before and after that fault: an access there raises SIGSEGV.

    ``seen``: the bytes that kernels get; ``written``: the same bytes, always writable.
    """

    def __init__(self, size_bytes: int, *, is_read_only: bool) -> None:
        """Maps the pages; read-only ones twice, once writable.

        To change their protection for each draw would take as long as drawing the inputs.
        """
        size = -(-size_bytes // mmap.PAGESIZE) * mmap.PAGESIZE
        file = os.memfd_create("operand")
        try:
            os.ftruncate(file, size)
            reserved = _map(None, size + 2 * FAULTING_BYTES, PROT_NONE, -1)
            protection = PROT_READ if is_read_only else PROT_READ_WRITE
            seen = _map(reserved + FAULTING_BYTES, size, protection, file)
            written = _map(None, size, PROT_READ_WRITE, file) if is_read_only else seen
        finally:
            os.close(file)
        # both arrays hold the owner, with the last of which the pages are unmapped
        owner = _Owner()
        parts = [(reserved, size + 2 * FAULTING_BYTES), (written, size)]
        weakref.finalize(owner, _unmap, parts if is_read_only else parts[:1])
        self.seen = np.asarray(_Bytes(owner, seen, size, is_read_only=is_read_only))
        self.written = np.asarray(_Bytes(owner, written, size, is_read_only=False))
        self.written.fill(0xFF)  # NaN, where a kernel reads between an array and the end of its page

    def start(self, size_bytes: int, alignment: int, *, at_end: bool) -> int:
        """Returns the byte offset of an aligned array: 0, or with ``at_end`` the largest one that fits."""
        if at_end:
            return self.seen.size - -(-size_bytes // alignment) * alignment
        return 0


class _Owner:
    pass


class _Bytes:
    """Mapped bytes, for numpy.asarray; the array keeps their owner."""

    def __init__(self, owner: _Owner, address: int, size: int, *, is_read_only: bool) -> None:
        self._owner = owner
        self.__array_interface__ = {
            "version": 3,
            "shape": (size,),
            "typestr": "|u1",
            "data": (address, is_read_only),
        }


def _map(address: int | None, size: int, protection: int, file: int) -> int:
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE if file < 0 else mmap.MAP_SHARED
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long)
    mapped = libc.mmap(address, size, protection, flags | (MAP_FIXED if address else 0), file, 0)
    if mapped is None or mapped == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), "mmap of operands")
    if file >= 0:  # large pages, where the system has them
        libc.madvise(ctypes.c_void_p(mapped), ctypes.c_size_t(size), MADV_HUGEPAGE)
    return int(mapped)


def _unmap(parts: list[tuple[int, int]]) -> None:
    libc = ctypes.CDLL(None)
    for address, size in parts:
        libc.munmap(ctypes.c_void_p(address), ctypes.c_size_t(size))


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
