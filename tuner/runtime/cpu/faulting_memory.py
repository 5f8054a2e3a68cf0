"""Pages for one operand between address space that faults: an access out of bounds ends the process.

Guard bands (``tuner.runtime.cpu.memory``) show writes out of bounds; these pages show reads as well.
"""

import ctypes
import mmap
import os
import weakref
from typing import final

import numpy as np

# Address space before and after an operand, without memory behind it: what is read or written there faults.
FAULTING_BYTES = 128 * 2**20
# mmap(2)
PROT_NONE = 0
PROT_READ = mmap.PROT_READ
PROT_READ_WRITE = mmap.PROT_READ | mmap.PROT_WRITE
MAP_FIXED = 0x10
MAP_NORESERVE = 0x4000
MADV_HUGEPAGE = 14  # madvise(2)


@final
class FaultingMemory:
    """Pages for one array, with 128 MiB before and after that fault: an access there raises SIGSEGV.

    ``seen``: the bytes that kernels get, an array of u8; ``written``: the same bytes, always writable.
    """

    def __init__(self, size_bytes: int, *, is_read_only: bool) -> None:
        """Maps the pages, filled with 0xFF; with ``is_read_only`` twice, as kernels see them and writable.

        To change their protection for each draw would take as long as drawing the inputs. Raises OSError if
        the system refuses the mapping.
        """
        size = -(-size_bytes // mmap.PAGESIZE) * mmap.PAGESIZE
        file = os.memfd_create("operand")
        try:
            os.ftruncate(file, size)
            reserved = _map(None, size + 2 * FAULTING_BYTES, PROT_NONE, -1)
            mapped = [(reserved, size + 2 * FAULTING_BYTES)]
            if is_read_only:
                seen = _map(reserved + FAULTING_BYTES, size, PROT_READ, file)
                written = _map(None, size, PROT_READ_WRITE, file)
                mapped.append((written, size))
            else:
                written = seen = _map(reserved + FAULTING_BYTES, size, PROT_READ_WRITE, file)
        finally:
            os.close(file)
        # both arrays hold the owner, with the last of which the pages are unmapped
        owner = _Owner()
        weakref.finalize(owner, _unmap, mapped)
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
    """Mapped bytes as an object that numpy.asarray takes; the array keeps the mapping alive."""

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
