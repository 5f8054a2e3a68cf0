"""Memref descriptors, the ABI by which compiled MLIR passes buffers."""

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tuner.core.device import DeviceError

# Bytes per element, by CUtensorMapDataType; 13 and later are packed 4-bit and 6-bit types.
TENSOR_MAP_ELEMENT_BYTES = (1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4)
HEADER_WORDS = 3  # allocated, aligned, offset


@dataclass(frozen=True)
class MemRef:
    """MLIR's descriptor of a ranked memref: allocated and aligned address, offset, sizes and strides.

    Each word has 8 bytes; offset and strides are in elements.
    """

    allocated: int
    aligned: int
    offset: int  # elements
    sizes: tuple[int, ...]
    strides: tuple[int, ...]  # elements

    @classmethod
    def at(cls, descriptor: int, rank: int) -> "MemRef":
        """Returns the memref descriptor of rank ``rank`` that host memory has at address ``descriptor``."""
        return cls.of_words(tuple((ctypes.c_int64 * word_count(rank)).from_address(descriptor)))

    @classmethod
    def of_words(cls, words: tuple[int, ...]) -> "MemRef":
        """Returns the memref descriptor made of these 64-bit words: the inverse of ``MemRef.words``."""
        after_sizes = (HEADER_WORDS + len(words)) // 2
        return cls(words[0], words[1], words[2], words[HEADER_WORDS:after_sizes], words[after_sizes:])

    @classmethod
    def of(cls, address: int, shape: tuple[int, ...]) -> "MemRef":
        """Returns the memref descriptor of a row-major array of ``shape``, without gaps, at ``address``."""
        strides, step = [], 1
        for size in reversed(shape):
            strides.append(step)
            step *= size
        return cls(address, address, 0, shape, tuple(reversed(strides)))

    @property
    def words(self) -> tuple[int, ...]:
        """Returns the descriptor as 64-bit words: allocated, aligned, offset, sizes, strides."""
        return (self.allocated, self.aligned, self.offset, *self.sizes, *self.strides)

    def address(self, item_bytes: int) -> int:
        """Returns the byte address of the first element; ``item_bytes``: bytes of an element."""
        return self.aligned + self.offset * item_bytes

    def extent_bytes(self, item_bytes: int) -> int:
        """Returns the bytes from the first element's start to the last element's end; 0 for an empty array.

        ``item_bytes``: bytes of an element. Gaps between elements count.
        """
        if 0 in self.sizes:
            return 0
        last = sum((size - 1) * stride for size, stride in zip(self.sizes, self.strides, strict=True))
        return (last + 1) * item_bytes


def word_count(rank: int) -> int:
    """Returns the number of 64-bit words of a memref descriptor of rank ``rank``."""
    return HEADER_WORDS + 2 * rank


def array_of(view: MemRef, dtype: "np.dtype[np.generic]") -> npt.NDArray[Any]:
    """Returns a numpy array that shares the host memory which a memref descriptor points to.

    The memory has to outlive the array; an empty array has new memory.
    """
    size_bytes = view.extent_bytes(dtype.itemsize)
    if size_bytes == 0:
        return np.empty(view.sizes, dtype)
    memory = np.ctypeslib.as_array((ctypes.c_uint8 * size_bytes).from_address(view.address(dtype.itemsize)))
    strides = tuple(stride * dtype.itemsize for stride in view.strides)
    return np.ndarray(view.sizes, dtype, memory, strides=strides)


def element_bytes_of_tensor_map(dtype: int) -> int:
    """Returns the bytes per element of a CUtensorMapDataType. Raises DeviceError for an unknown type."""
    if not 0 <= dtype < len(TENSOR_MAP_ELEMENT_BYTES):
        raise DeviceError(f"tensor map: found type {dtype}, allowed 0 to {len(TENSOR_MAP_ELEMENT_BYTES) - 1}")
    return TENSOR_MAP_ELEMENT_BYTES[dtype]
