"""The heap of compiled host code; freed memory is kept until no device work can use it any more."""

import ctypes
import os
from typing import Any

from tuner.core.device import AbstractHostWatch

POISON = 0xFF  # all bits set: NaN in every float type
STDERR = 2


class HostHeap:
    """``malloc``, ``aligned_alloc`` and ``free`` for a JIT; the addresses are valid as long as this object.

    A device that checks host accesses is notified of every free; new memory is then NaN-filled.
    """

    def __init__(self, watch: AbstractHostWatch | None) -> None:
        self._watch = watch
        self._libc = _libc()
        self._sizes: dict[int, int] = {}  # address of each allocation in use -> its size in bytes
        self._freed: list[int] = []
        self._functions = {
            "malloc": ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)(self._allocate),
            "aligned_alloc": ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)(
                self._allocate_aligned
            ),
            "free": ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.free),
        }

    def addresses(self) -> dict[str, int]:
        """Returns the address of each function by its name."""
        return {name: ctypes.cast(each, ctypes.c_void_p).value or 0 for name, each in self._functions.items()}

    @property
    def in_use(self) -> int:
        """Returns the number of allocations that were not freed."""
        return len(self._sizes)

    def free(self, address: int | None) -> None:
        """Marks an allocation of this heap as freed; ignores other addresses."""
        if address not in self._sizes:
            return
        size_bytes = self._sizes.pop(address)
        if self._watch is not None:
            self._watch.host_writes(address, size_bytes)
        self._freed.append(address)

    def take_freed(self) -> tuple[int, ...]:
        """Returns the freed allocations that are still kept; the caller passes these to ``give_back``."""
        freed, self._freed = tuple(self._freed), []
        return freed

    def give_back(self, addresses: tuple[int, ...]) -> None:
        """Returns freed allocations to the system; no work may use them any more."""
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
    library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    library.aligned_alloc.restype = ctypes.c_void_p
    library.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
    library.free.restype, library.free.argtypes = None, [ctypes.c_void_p]
    return library
