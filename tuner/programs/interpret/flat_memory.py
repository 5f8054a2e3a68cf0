"""The memory of this process as arrays of numbers, read and written at addresses that were checked before."""

from functools import cache
from types import SimpleNamespace

import numpy as np

from tuner.core.numpy_types import DType
from tuner.programs.interpret.element_types import BOOL, Array

FIRST = 16  # address of element 0: no array may begin at address 0; a multiple of every element's size
SPAN_BYTES = 1 << 47  # user addresses of x86-64
# alignment of allocations, as with cudaMalloc: CUDA programming guide, device memory accesses
ALIGN_BYTES = 256
POISON = 0xFF  # value of uninitialized bytes: NaN as a float, -1 as an integer


@cache
def _numbers(dtype: DType) -> Array:
    size = dtype.itemsize
    interface = {
        "shape": (SPAN_BYTES // size,),
        "typestr": f"<u{size}" if size > 1 else "|u1",
        "data": (FIRST, False),
        "version": 3,
    }
    whole = np.asarray(SimpleNamespace(__array_interface__=interface))
    return whole if dtype == BOOL else whole.view(dtype)


def read(dtype: DType, addresses: Array) -> Array:
    """Returns the numbers at byte addresses of this process's memory; invalid addresses are not detected.

    ``addresses`` must be multiples of the size of ``dtype``; the result has their shape.
    """
    found: Array = _numbers(dtype)[(addresses - FIRST) // dtype.itemsize]
    return found != 0 if dtype == BOOL else found


def write(dtype: DType, addresses: Array, values: Array) -> None:
    """Stores ``values`` at byte addresses of this process's memory; invalid addresses are not detected.

    ``addresses`` must be multiples of the size of ``dtype``; where addresses are equal, the last value
    remains.
    """
    _numbers(dtype)[(addresses - FIRST) // dtype.itemsize] = values


def allocate(size_bytes: int) -> tuple[int, Array]:
    """Allocates ``size_bytes`` bytes, filled with 0xFF: NaN as floats, -1 as signed integers.

    Returns (address, a multiple of 256; the array that owns the memory and must be kept as long as it is
    used).
    """
    memory = np.full(size_bytes + ALIGN_BYTES, POISON, np.uint8)
    return memory.ctypes.data + -memory.ctypes.data % ALIGN_BYTES, memory
