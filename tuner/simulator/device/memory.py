"""Memory of the simulated GPU: host memory, poisoned with NaN, between red zones.

Freed memory stays in a quarantine, where its addresses are not given out again, so that a use after free is
recognised. Red zones and quarantine are those of AddressSanitizer (Serebryany et al., USENIX ATC 2012).
"""

import bisect
import ctypes
import enum
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tuner.simulator.device.device_addresses import device_bytes
from tuner.simulator.device.driver_errors import refused
from tuner.simulator.device.happens_before import Moment

Bytes = npt.NDArray[np.uint8]
ALIGN_BYTES = 256  # as cuMemAlloc does; CUDA programming guide, device memory accesses
RED_ZONE_BYTES = 4096
RED = 0xA5
POISON = 0xFF  # of every float type: NaN
QUARANTINE_BYTES = 128 * 2**20  # of freed memory


class MemoryKind(enum.Enum):
    """Which call of the driver made a region."""

    DEVICE = "device memory"
    PINNED = "pinned memory"  # of the host, made here
    REGISTERED = "registered memory"  # of the host, made elsewhere


@dataclass(eq=False)
class MemoryRegion:
    """A range of memory that kernels can address."""

    name: str  # "d0"
    kind: MemoryKind
    bytes: Bytes
    freed: Moment | None = None  # of the call to free; the memory exists in quarantine
    is_written: bool = True  # ever; false for new device memory
    is_kept: bool = False  # outlives the call that made it on purpose: a result, or memory of a graph
    _slab: Any = field(default=None, repr=False)  # keeps the red zones alive

    @property
    def address(self) -> int:
        """Returns the first byte's address."""
        return int(self.bytes.ctypes.data)

    @property
    def end(self) -> int:
        """Returns the address behind the last byte."""
        return self.address + self.bytes.size

    def holds(self, address: int, size_bytes: int) -> bool:
        """Tells whether a range of addresses lies inside of the region."""
        return self.address <= address and address + size_bytes <= self.end

    def poison(self) -> None:
        """Fills the region with bytes that read as NaN in every floating-point type."""
        self.bytes.fill(POISON)

    def stray_bytes(self) -> int:
        """Returns how many bytes of the red zones were overwritten."""
        if self._slab is None:
            return 0
        first = self.address - int(self._slab.ctypes.data)
        before = self._slab[first - RED_ZONE_BYTES : first]
        after = self._slab[first + self.bytes.size : first + self.bytes.size + RED_ZONE_BYTES]
        return int(np.count_nonzero(before != RED) + np.count_nonzero(after != RED))


class SimulatedMemory:
    """All regions of memory, searched by address."""

    def __init__(self) -> None:
        self._starts: list[int] = []  # of regions with their red zones, in order
        self._regions: dict[int, MemoryRegion] = {}  # by start
        self._registered: dict[int, MemoryRegion] = {}
        self._freed: deque[MemoryRegion] = deque()
        self._count = dict.fromkeys(MemoryKind, 0)

    def allocate(self, size_bytes: int, kind: MemoryKind) -> MemoryRegion:
        """Returns a new region, poisoned. Raises DeviceError where there is no room."""
        try:
            slab = _slab(size_bytes + 2 * RED_ZONE_BYTES + ALIGN_BYTES, kind)
        except (MemoryError, ValueError) as error:  # the second of what no address has room for
            raise refused("OUT_OF_MEMORY", f"found {size_bytes} bytes, allowed what is free here") from error
        first = RED_ZONE_BYTES + -(int(slab.ctypes.data) + RED_ZONE_BYTES) % ALIGN_BYTES
        slab[:first], slab[first + size_bytes :] = RED, RED
        region = MemoryRegion(self._name(kind), kind, slab[first : first + size_bytes], _slab=slab)
        region.poison()
        start = region.address - RED_ZONE_BYTES
        bisect.insort(self._starts, start)
        self._regions[start] = region
        return region

    def register(self, address: int, size_bytes: int) -> MemoryRegion:
        """Adds existing host memory as a region."""
        view = np.ctypeslib.as_array((ctypes.c_uint8 * size_bytes).from_address(address))
        region = MemoryRegion(self._name(MemoryKind.REGISTERED), MemoryKind.REGISTERED, view)
        self._registered[address] = region
        return region

    def unregister(self, address: int) -> MemoryRegion | None:
        """Removes and returns registered memory; None where none begins at the address."""
        return self._registered.pop(address, None)

    def near(self, address: int) -> MemoryRegion | None:
        """Returns the region whose bytes or red zones hold an address; registered memory has no red zones."""
        position = bisect.bisect_right(self._starts, address) - 1
        if position >= 0:
            region = self._regions[self._starts[position]]
            if address < region.end + RED_ZONE_BYTES:
                return region
        return next((region for region in self._registered.values() if region.holds(address, 1)), None)

    def overlapping(self, address: int, size_bytes: int) -> MemoryRegion | None:
        """Returns a region made here that a range touches, red zones included."""
        position = bisect.bisect_left(self._starts, address + max(size_bytes, 1)) - 1
        region = self._regions[self._starts[position]] if position >= 0 else None
        return region if region is not None and address < region.end + RED_ZONE_BYTES else None

    def at(self, address: int) -> MemoryRegion | None:
        """Returns the region that begins at an address."""
        region = self.near(address)
        return region if region is not None and region.address == address else None

    def live(self) -> tuple[MemoryRegion, ...]:
        """Returns the memory made here that is not freed, oldest first."""
        return tuple(each for each in self._regions.values() if each.freed is None)

    def retire(self, region: MemoryRegion) -> None:
        """Puts a freed region into quarantine, unless it is kept: a graph may allocate it again."""
        if not region.is_kept and region not in self._freed:
            self._freed.append(region)

    def release(self) -> None:
        """Deletes the oldest regions of a full quarantine; no pending work may use them."""
        kept = sum(each.bytes.size for each in self._freed)
        while kept > QUARANTINE_BYTES:
            oldest = self._freed.popleft()
            kept -= oldest.bytes.size
            start = oldest.address - RED_ZONE_BYTES
            del self._regions[start]
            self._starts.remove(start)

    def describe(self, address: int) -> str:
        """Names the memory at an address."""
        region = self.near(address)
        if region is None:
            return "host memory"
        return f"byte {address - region.address} of {region.name} ({region.bytes.size} bytes)"

    def _name(self, kind: MemoryKind) -> str:
        self._count[kind] += 1
        return f"{kind.name[0].lower()}{self._count[kind] - 1}"


def _slab(size_bytes: int, kind: MemoryKind) -> Bytes:
    """Returns new bytes. Raises MemoryError, ValueError."""
    return device_bytes(size_bytes) if kind is MemoryKind.DEVICE else np.empty(size_bytes, np.uint8)
