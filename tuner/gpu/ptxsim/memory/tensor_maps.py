"""Tensor maps of bulk copies (TMA) in tiled mode: boxes of a tensor, and their layout in shared memory.

PTX ISA, "Tensors"; CUDA driver API, cuTensorMapEncodeTiled.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from tuner.core.compiled_code import TensorMapLayout
from tuner.core.errors import UsageError
from tuner.gpu.ptxsim.memory.global_memory import GlobalBuffer
from tuner.gpu.ptxsim.ptx.dtypes import Array, Bools, Indices, to_tf32

SWIZZLES_BYTES = (0, 32, 64, 128)
BOX_LIMIT = 256  # elements of one dimension; CUDA driver API, cuTensorMapEncodeTiled
ALIGN_BYTES = 16  # of strides
SWIZZLE_BITS = {0: 0, 32: 1, 64: 3, 128: 7}  # span in bytes -> mask: changed bits of a 16-byte chunk's index
TFLOAT32 = 11
# CUtensorMapDataType -> element type; 10 and 12, the FTZ types, flush subnormals and are not supported
DTYPES = {
    **{number: np.dtype(name) for number, name in enumerate(("u1", "u2", "u4", "i4", "u8", "i8", "f2"))},
    7: np.dtype("f4"),
    8: np.dtype("f8"),
    9: np.dtype(ml_dtypes.bfloat16),
    TFLOAT32: np.dtype("f4"),
}


@dataclass(frozen=True, eq=False)
class TensorMap:
    """A CUtensorMap in tiled mode over a numpy array; its dimensions and strides are those of the array.

    Raises UsageError for a swizzle other than 0, 32, 64 or 128 bytes, a box that lacks a size from 1 to 256
    per dimension or is wider than the swizzle (0: any), and outer strides that are not multiples of 16 bytes.
    """

    array: Array
    box: tuple[int, ...]  # elements of a copied box, in the order of the array's shape
    swizzle_bytes: int = 128
    is_tf32: bool = False  # CU_TENSOR_MAP_DATA_TYPE_TFLOAT32: copies round f32 to tf32

    def __post_init__(self) -> None:
        if self.swizzle_bytes not in SWIZZLES_BYTES:
            raise UsageError(f"tensor map: found swizzle {self.swizzle_bytes}, allowed {SWIZZLES_BYTES}")
        if len(self.box) != self.array.ndim or not all(0 < size <= BOX_LIMIT for size in self.box):
            raise UsageError(
                f"tensor map: found box {self.box}, allowed {self.array.ndim} sizes from 1 to {BOX_LIMIT}"
            )
        if any(stride % ALIGN_BYTES for stride in self.array.strides[:-1]):
            raise UsageError(
                f"tensor map: found strides {self.array.strides}, allowed multiples of {ALIGN_BYTES} bytes"
            )
        inner_bytes = self.box[-1] * self.array.itemsize
        if self.swizzle_bytes and inner_bytes > self.swizzle_bytes:
            raise UsageError(
                f"tensor map: found a box {inner_bytes} bytes wide, allowed {self.swizzle_bytes}: the swizzle"
            )

    @property
    def box_bytes(self) -> int:
        return int(np.prod(self.box)) * self.array.itemsize

    def elements(self, coordinates: Sequence[int]) -> tuple[Indices, Bools]:
        """Returns (indices in the flat array, whether each lies inside) of the elements of a box.

        ``coordinates``: of the box's first element, innermost first, as in PTX; they may be outside of the
        array.
        """
        index = np.zeros(1, np.int64)
        inside = np.ones(1, bool)
        for axis, start in enumerate(reversed(coordinates)):
            index_along = start + np.arange(self.box[axis])
            stride = self.array.strides[axis] // self.array.itemsize
            index = (index[:, None] + index_along * stride).ravel()
            inside = (inside[:, None] & (index_along >= 0) & (index_along < self.array.shape[axis])).ravel()
        return index, inside

    def content(self, coordinates: Sequence[int]) -> Array:
        """Returns the bytes of the box at ``coordinates``: zeros outside, rounded if ``is_tf32``."""
        index, inside = self.elements(coordinates)
        flat = self.array.reshape(-1)
        content = np.zeros(len(index), flat.dtype)
        content[inside] = flat[index[inside]]
        if self.is_tf32:
            content = to_tf32(content.view(np.float32)).view(flat.dtype)
        return content.view(np.uint8)

    def store(self, coordinates: Sequence[int], content: Array) -> None:
        """Stores the bytes of the box at ``coordinates`` in the array; bytes outside of it are dropped."""
        index, inside = self.elements(coordinates)
        self.array.reshape(-1)[index[inside]] = content.view(self.array.dtype)[inside]

    def shared_addresses(self, start: int) -> Indices:
        """Returns the swizzled shared address of each byte of a box that begins at address ``start``."""
        return swizzled(start + np.arange(self.box_bytes), self.swizzle_bytes)


@dataclass(frozen=True, eq=False)
class PlacedMap:
    """A tensor map that a launch uses, with the global-memory buffer of its array."""

    tensor: TensorMap
    buffer: GlobalBuffer

    def cells(self, coordinates: Sequence[int]) -> Indices:
        """Returns the cells of race detection that a box covers in the array: ascending, (1, cells)."""
        index, inside = self.tensor.elements(coordinates)
        item_bytes = self.tensor.array.itemsize
        races = self.buffer.races
        return np.unique(races.cells(index[inside] * item_bytes, item_bytes))[None]


def swizzled(addresses: Indices, span_bytes: int) -> Indices:
    """Returns swizzled shared addresses: bits from 4 up are XORed with bits from 7 up (PTX ISA).

    ``span_bytes``: 0 (none), 32, 64 or 128; it says how many bits.
    """
    return addresses ^ ((addresses >> 7 & SWIZZLE_BITS[span_bytes]) << 4)


def extent_bytes(layout: TensorMapLayout) -> int:
    """Returns the bytes from a tensor's first element to the end of its last.

    Raises KeyError for an element type that is not in DTYPES.
    """
    item_bytes = int(DTYPES[layout.dtype].itemsize)
    strides = (item_bytes, *layout.strides_bytes)
    return item_bytes + sum((size - 1) * stride for size, stride in zip(layout.sizes, strides, strict=True))


def tensor_of(layout: TensorMapLayout, memory: Array, offset_bytes: int = 0) -> TensorMap:
    """Returns a layout's tensor map over ``memory`` (bytes), from ``offset_bytes`` on.

    Raises UsageError for a tensor that is not contiguous, or a map that is not simulated; KeyError for an
    element type that is not in DTYPES.
    """
    dtype = DTYPES[layout.dtype]
    shape = tuple(reversed(layout.sizes))
    strides = (*reversed(layout.strides_bytes), dtype.itemsize)
    array: Array = np.ndarray(shape, dtype, memory, offset_bytes, strides)
    if not array.flags.c_contiguous:
        raise UsageError(f"tensor map: found strides {strides}, allowed a contiguous tensor in the simulator")
    return TensorMap(
        array, tuple(reversed(layout.box)), SWIZZLES_BYTES[layout.swizzle], layout.dtype == TFLOAT32
    )
