"""Memory at addresses reserved for simulated device memory, so that host code recognises device pointers."""

import ctypes
import errno
import mmap
import weakref
from typing import Any

import numpy as np
import numpy.typing as npt

from tuner.core.device import DEVICE_ADDRESS_BITS, DEVICE_ADDRESS_TAG

FIRST, END = (tag << DEVICE_ADDRESS_BITS for tag in (DEVICE_ADDRESS_TAG, DEVICE_ADDRESS_TAG + 1))
STEP_BYTES = 1 << 16  # granularity of addresses; each address is tried once per process
MAP_FIXED_NOREPLACE = 0x100000  # linux/mman.h, since 4.17
TRIES = 1 << 10
# Of one allocation, four times a GPU's memory: larger requests fail without using up addresses.
LARGEST_BYTES = 1 << 38
FAILED = ctypes.c_void_p(-1).value

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_int64]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_FLAGS = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_FIXED_NOREPLACE


class _Places:
    """A bump allocator of addresses; freed addresses are not reused."""

    def __init__(self) -> None:
        self._next = FIRST

    def take(self, size_bytes: int) -> int:
        place = self._next
        self._next += -(-size_bytes // STEP_BYTES) * STEP_BYTES
        return place


_places = _Places()  # one per process, like the address space


def device_bytes(size_bytes: int) -> npt.NDArray[np.uint8]:
    """Returns new zeroed memory at addresses reserved for simulated device memory.

    The memory is unmapped when its last view is deleted; its addresses are not used again in this process.
    Raises MemoryError where no address range is free, and for more than LARGEST_BYTES (256 GiB).
    """
    if size_bytes > LARGEST_BYTES:
        raise MemoryError(f"{size_bytes} bytes")
    for _ in range(TRIES):
        place = _places.take(size_bytes)
        if place + size_bytes > END:
            break
        address = _libc.mmap(place, size_bytes, mmap.PROT_READ | mmap.PROT_WRITE, _FLAGS, -1, 0)
        if address == place:
            return _array(address, size_bytes)
        if address != FAILED:  # a kernel before 4.17 treats the address as a hint
            _libc.munmap(address, size_bytes)
        elif ctypes.get_errno() != errno.EEXIST:
            break
    raise MemoryError(f"{size_bytes} bytes")


def _array(address: int, size_bytes: int) -> npt.NDArray[np.uint8]:
    memory: Any = (ctypes.c_uint8 * size_bytes).from_address(address)
    weakref.finalize(memory, _libc.munmap, address, size_bytes).atexit = False
    return np.frombuffer(memory, np.uint8)
