"""Tensor maps of the simulated GPU: encodes the map's fields in the 128 bytes of an opaque CUtensorMap."""

import struct
from collections.abc import Callable
from dataclasses import dataclass

from tuner.core.device import DeviceError, TensorMapLayout
from tuner.core.errors import UsageError
from tuner.simulator.device.memory import MemoryRegion
from tuner.simulator.ptx.memory.map_layouts import DTYPES, SWIZZLES_BYTES, extent_bytes, tensor_of
from tuner.simulator.ptx.memory.tensor_map import TensorMap

MAP_BYTES = 128  # CUtensorMap, cuda.h
MAGIC = b"tuner.tm"
LAYOUT = struct.Struct("<8sQ5Q4Q5H4B")  # magic, address, sizes, strides, box, rank, type, swizzle, padding
RANK_LIMIT = 5  # cuTensorMapEncodeTiled


@dataclass(frozen=True)
class EncodedMap:
    """A tensor map of the simulated GPU: the arguments of cuTensorMapEncodeTiled that are simulated.

    Sizes, strides and box are innermost first.
    """

    address: int
    sizes: tuple[int, ...]
    strides_bytes: tuple[int, ...]  # of every dimension except the innermost
    box: tuple[int, ...]
    dtype: int
    swizzle: int

    def encode(self) -> bytes:
        """Returns the map as 128 bytes, the size of a CUtensorMap, in a format of the simulator.

        Raises DeviceError for a rank, an element type or a swizzle that the simulator does not support.
        """
        rank = len(self.sizes)
        if not 1 <= rank <= RANK_LIMIT or len(self.box) != rank or len(self.strides_bytes) != rank - 1:
            raise DeviceError(
                f"tensor map: found {rank} sizes, allowed 1 to {RANK_LIMIT} with strides and box"
            )
        if self.dtype not in DTYPES or self.swizzle not in range(len(SWIZZLES_BYTES)):
            found = f"type {self.dtype} and swizzle {self.swizzle}"
            raise DeviceError(f"tensor map: found {found}, which are not simulated")
        fields = (*_padded(self.sizes, 5), *_padded(self.strides_bytes, 4), *_padded(self.box, 5))
        packed = LAYOUT.pack(MAGIC, self.address, *fields, rank, self.dtype, self.swizzle, 0)
        return packed.ljust(MAP_BYTES, b"\0")

    @classmethod
    def decode(cls, content: bytes) -> "EncodedMap":
        """Returns the map that ``encode`` returned as ``content``."""
        _, address, *fields, rank, dtype, swizzle, _ = LAYOUT.unpack_from(content)
        sizes, strides, box = fields[:rank], fields[5 : 5 + rank - 1], fields[9 : 9 + rank]
        return cls(address, tuple(sizes), tuple(strides), tuple(box), dtype, swizzle)

    def tensor(self, near: Callable[[int], MemoryRegion | None]) -> TensorMap:
        """Returns the map with the memory of its tensor, as the PTX simulator takes it.

        ``near`` returns the memory region at an address, or None. Raises DeviceError for a tensor that is not
        inside of one region or not contiguous.
        """
        layout = TensorMapLayout(self.sizes, self.strides_bytes, self.box, self.dtype, swizzle=self.swizzle)
        extent, region = extent_bytes(layout), near(self.address)
        if region is None or not region.holds(self.address, extent):
            raise DeviceError(
                f"tensor map: found {extent} bytes at {self.address:#x}, which are in no buffer"
            )
        try:
            return tensor_of(layout, region.bytes, self.address - region.address)
        except UsageError as error:
            raise DeviceError(str(error)) from error


def is_map(content: bytes) -> bool:
    """Returns whether bytes are a tensor map of ``EncodedMap.encode``, by the magic number at their start."""
    return content[: len(MAGIC)] == MAGIC


def _padded(numbers: tuple[int, ...], count: int) -> tuple[int, ...]:
    return numbers + (0,) * (count - len(numbers))
