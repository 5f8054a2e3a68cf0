"""The heap of compiled host code: freed memory is kept until no device work can use it any more."""

import ctypes
import os
from ctypes import c_size_t, c_void_p
from typing import Any

from tuner.core.device import AbstractHostWatch
from tuner.runtime.programs.host_errors import addresses_of

POISON = 0xFF  # all bits set: NaN in every float type
STDERR = 2


class HostHeap:
    """The C functions ``malloc``, ``aligned_alloc`` and ``free`` of compiled host code.

    Their addresses are valid as long as this object. ``watch``: of a device that checks host accesses; it is
    notified of frees, and new memory is filled with NaN. None: no checks.
    """

    def __init__(self, watch: AbstractHostWatch | None) -> None:
        self._watch = watch
        self._libc = _libc()
        self._sizes: dict[int, int] = {}  # address of each allocation in use -> its size in bytes
        self._freed: list[int] = []
        self._functions = {
            "malloc": ctypes.CFUNCTYPE(c_void_p, c_size_t)(self._allocate),
            "aligned_alloc": ctypes.CFUNCTYPE(c_void_p, c_size_t, c_size_t)(self._allocate_aligned),
            "free": ctypes.CFUNCTYPE(None, c_void_p)(self.free),
        }

    def addresses(self) -> dict[str, int]:
        """Returns the address of each function by its name in C."""
        return addresses_of(self._functions)

    @property
    def in_use(self) -> int:
        """Returns how many blocks are allocated and not freed."""
        return len(self._sizes)

    def free(self, address: int | None) -> None:
        """Marks a block of this heap as freed.

        Its memory stays until ``give_back``, because device work may still use it.
        """
        if address not in self._sizes:
            return
        size_bytes = self._sizes.pop(address)
        if self._watch is not None:
            self._watch.host_writes(address, size_bytes)
        self._freed.append(address)

    def free_all(self) -> None:
        """Marks all blocks in use as freed, after a call that has failed: nothing uses them any more."""
        for address in tuple(self._sizes):
            self.free(address)

    def take_freed(self) -> tuple[int, ...]:
        """Returns the addresses of freed blocks and forgets them; the caller passes them to ``give_back``."""
        freed = tuple(self._freed)
        self._freed = []
        return freed

    def give_back(self, addresses: tuple[int, ...]) -> None:
        """Frees blocks that ``take_freed`` returned, by the C library. No work may use them."""
        for address in addresses:
            self._libc.free(address)

    def _allocate(self, size_bytes: int) -> int | None:
        return self._known(self._libc.malloc(max(size_bytes, 1)), size_bytes)

    def _allocate_aligned(self, alignment_bytes: int, size_bytes: int) -> int | None:
        return self._known(self._libc.aligned_alloc(alignment_bytes, size_bytes), size_bytes)

    def _known(self, address: int | None, size_bytes: int) -> int | None:
        if not address:  # compiled code does not check for NULL, and crashes when it writes there
            os.write(STDERR, f"found no {size_bytes} bytes of host memory\n".encode())
            return None
        self._sizes[address] = size_bytes
        if self._watch is not None:
            ctypes.memset(address, POISON, size_bytes)
        return address


def _libc() -> Any:
    library = ctypes.CDLL(None)
    library.malloc.restype = ctypes.c_void_p
    library.malloc.argtypes = [ctypes.c_size_t]
    library.aligned_alloc.restype = ctypes.c_void_p
    library.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
    library.free.restype = None
    library.free.argtypes = [ctypes.c_void_p]
    return library
