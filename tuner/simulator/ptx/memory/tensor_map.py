"""Tensor maps in tiled mode: the bytes that a bulk tensor copy touches. PTX ISA, "Tensors"."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tuner.core.errors import UsageError
from tuner.simulator.ptx.dtypes import Array, Bools, Indices
from tuner.simulator.ptx.memory.global_memory import GlobalBuffer
from tuner.simulator.ptx.numbers.rounding import to_tf32

SWIZZLES_BYTES = (0, 32, 64, 128)
BOX_LIMIT = 256  # elements of one dimension; CUDA driver API, cuTensorMapEncodeTiled
ALIGN_BYTES = 16  # of strides
SWIZZLE_BITS = {0: 0, 32: 1, 64: 3, 128: 7}  # span in bytes -> bits of the 16-byte chunk's index that change


@dataclass(frozen=True, eq=False)
class TensorMap:
    """A CUtensorMap in tiled mode over a numpy array; its dimensions and strides are those of the array.

    Raises UsageError for a swizzle other than 0, 32, 64 and 128 bytes, a box that has not a size from 1 to
    256 for each dimension or is wider than the swizzle (0: any width), and outer strides that are no
    multiples of 16 bytes. Other rules of CUDA are not checked.
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
        """Returns the size of a box in bytes, elements outside of the array included."""
        return int(np.prod(self.box)) * self.array.itemsize

    def elements(self, coordinates: Sequence[int]) -> tuple[Indices, Bools]:
        """Returns (index in the flat array, whether it lies inside the array) for each element of a box.

        ``coordinates`` are the box's first element, innermost first, as in PTX instructions; they may be
        outside.
        """
        index, inside = np.zeros(1, np.int64), np.ones(1, bool)
        for axis, start in enumerate(reversed(coordinates)):
            index_along = start + np.arange(self.box[axis])
            stride = self.array.strides[axis] // self.array.itemsize
            index = (index[:, None] + index_along * stride).ravel()
            inside = (inside[:, None] & (index_along >= 0) & (index_along < self.array.shape[axis])).ravel()
        return index, inside

    def content(self, coordinates: Sequence[int]) -> Array:
        """Returns the bytes of the box at ``coordinates`` (innermost first), before swizzling.

        Elements outside of the array are zeros. Elements of a map with ``is_tf32`` are rounded to tf32.
        """
        index, inside = self.elements(coordinates)
        flat = self.array.reshape(-1)
        found = np.zeros(len(index), flat.dtype)
        found[inside] = flat[index[inside]]
        if self.is_tf32:
            found = to_tf32(found.view(np.float32)).view(flat.dtype)
        return found.view(np.uint8)

    def store(self, coordinates: Sequence[int], content: Array) -> None:
        """Stores ``content``, the bytes of the box at ``coordinates`` (innermost first), in the array.

        Elements outside of the array are dropped.
        """
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
        """Returns the numbers of the race detector's cells that a box touches: array of shape (1, cells).

        The numbers ascend, each once. ``coordinates`` are the box's first element, innermost first. Elements
        outside of the array are left out.
        """
        index, inside = self.tensor.elements(coordinates)
        item_bytes, races = self.tensor.array.itemsize, self.buffer.races
        return np.unique(races.cells(index[inside] * item_bytes, item_bytes))[None]


def swizzled(addresses: Indices, span_bytes: int) -> Indices:
    """Returns shared addresses after swizzling: bits from 4 up are XORed with the bits from 7 up.

    ``span_bytes`` is 32, 64 or 128, for 1, 2 or 3 bits, or 0 for no swizzle. PTX ISA, "Swizzling Modes".
    """
    return addresses ^ ((addresses >> 7 & SWIZZLE_BITS[span_bytes]) << 4)
