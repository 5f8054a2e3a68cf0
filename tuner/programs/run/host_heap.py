"""The heap of compiled host code. Freed memory is kept until no work on a device can use it any more."""

import ctypes
import os
from typing import Any

from tuner.core.device import AbstractHostWatch

POISON = 0xFF  # of every float type: NaN
STDERR = 2


class HostHeap:
    """``malloc``, ``aligned_alloc`` and ``free`` for a JIT, as addresses. They live as long as this object.

    A device that checks its host is told of every free; new memory is then filled with NaN.
    """

    def __init__(self, watch: AbstractHostWatch | None) -> None:
        self._watch = watch
        self._libc = _libc()
        self._sizes: dict[int, int] = {}  # of what is in use
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
        """Returns how many allocations were not freed."""
        return len(self._sizes)

    def free(self, address: int | None) -> None:
        """Frees memory that the code has asked for; what is not of this heap is left alone."""
        if address not in self._sizes:
            return
        size_bytes = self._sizes.pop(address)
        if self._watch is not None:
            self._watch.host_writes(address, size_bytes)
        self._freed.append(address)

    def take_freed(self) -> tuple[int, ...]:
        """Returns the freed memory that is still kept; the caller gives it to the system by ``give_back``."""
        freed, self._freed = tuple(self._freed), []
        return freed

    def give_back(self, addresses: tuple[int, ...]) -> None:
        """Returns memory to the system: nothing may use it any more."""
        for address in addresses:
            self._libc.free(address)

    def _allocate(self, size_bytes: int) -> int | None:
        return self._known(self._libc.malloc(max(size_bytes, 1)), size_bytes)

    def _allocate_aligned(self, alignment_bytes: int, size_bytes: int) -> int | None:
        return self._known(self._libc.aligned_alloc(alignment_bytes, size_bytes), size_bytes)

    def _known(self, address: int | None, size_bytes: int) -> int | None:
        if not address:  # the code does not look, and the process ends where it writes there
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
