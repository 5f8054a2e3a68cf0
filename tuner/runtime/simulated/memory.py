"""Memory of the simulated GPU: real host memory, poisoned with NaN, between red zones.

What is freed is kept for a while and its addresses are not given out again, so that a late use is recognised.
"""

import bisect
import ctypes
import enum
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tuner.runtime.simulated.happens_before import Moment
from tuner.runtime.simulated.refusal import refused

Bytes = npt.NDArray[np.uint8]
ALIGN_BYTES = 256  # as cuMemAlloc does; CUDA programming guide, device memory accesses
RED_ZONE_BYTES = 4096
RED = 0xA5
POISON = 0xFF  # of every float type: NaN
KEPT_BYTES = 128 * 2**20  # of freed memory


class Kind(enum.Enum):
    """Who made a region, and what for."""

    DEVICE = "device memory"
    PINNED = "pinned memory"  # of the host, made here
    REGISTERED = "registered memory"  # of the host, made elsewhere


@dataclass(eq=False)
class Region:
    """Memory that kernels can reach."""

    name: str  # "d0"
    kind: Kind
    bytes: Bytes
    freed: Moment | None = None  # when that was asked for; the memory is still there
    is_written: bool = True  # something was ever put there; false for device memory as it comes
    is_kept: bool = False  # outlives the call that made it, on purpose; a graph may free it and use it again
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
        """Tells whether a range lies within."""
        return self.address <= address and address + size_bytes <= self.end

    def poison(self) -> None:
        """Makes every float NaN."""
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
    """All regions, by address."""

    def __init__(self) -> None:
        self._starts: list[int] = []  # of regions with their red zones, in order
        self._regions: dict[int, Region] = {}  # by start
        self._registered: dict[int, Region] = {}
        self._freed: deque[Region] = deque()
        self._count = dict.fromkeys(Kind, 0)

    def allocate(self, size_bytes: int, kind: Kind) -> Region:
        """Returns a new region, poisoned. Raises DeviceError where there is no room."""
        try:
            slab = np.empty(size_bytes + 2 * RED_ZONE_BYTES + ALIGN_BYTES, np.uint8)
        except (MemoryError, ValueError) as error:  # the second of what no address has room for
            raise refused("OUT_OF_MEMORY", f"found {size_bytes} bytes, allowed what is free here") from error
        slab.fill(RED)
        first = RED_ZONE_BYTES + -(int(slab.ctypes.data) + RED_ZONE_BYTES) % ALIGN_BYTES
        region = Region(self._name(kind), kind, slab[first : first + size_bytes], _slab=slab)
        region.poison()
        start = region.address - RED_ZONE_BYTES
        bisect.insort(self._starts, start)
        self._regions[start] = region
        return region

    def register(self, address: int, size_bytes: int) -> Region:
        """Makes host memory known that exists."""
        view = np.ctypeslib.as_array((ctypes.c_uint8 * size_bytes).from_address(address))
        region = Region(self._name(Kind.REGISTERED), Kind.REGISTERED, view)
        self._registered[address] = region
        return region

    def unregister(self, address: int) -> Region | None:
        """Forgets registered memory; None where there is none."""
        return self._registered.pop(address, None)

    def near(self, address: int) -> Region | None:
        """Returns the region whose bytes or red zones hold an address; registered memory has no red zones."""
        position = bisect.bisect_right(self._starts, address) - 1
        if position >= 0:
            region = self._regions[self._starts[position]]
            if address < region.end + RED_ZONE_BYTES:
                return region
        return next((region for region in self._registered.values() if region.holds(address, 1)), None)

    def overlapping(self, address: int, size_bytes: int) -> Region | None:
        """Returns a region made here that a range touches, red zones included."""
        position = bisect.bisect_left(self._starts, address + max(size_bytes, 1)) - 1
        region = self._regions[self._starts[position]] if position >= 0 else None
        return region if region is not None and address < region.end + RED_ZONE_BYTES else None

    def at(self, address: int) -> Region | None:
        """Returns the region that begins at an address."""
        region = self.near(address)
        return region if region is not None and region.address == address else None

    def live(self) -> tuple[Region, ...]:
        """Returns the device memory that nobody has freed, oldest first."""
        regions = self._regions.values()
        return tuple(each for each in regions if each.kind is Kind.DEVICE and each.freed is None)

    def retire(self, region: Region) -> None:
        """Takes a region whose free is done; a graph may make kept ones live again."""
        if not region.is_kept and region not in self._freed:
            self._freed.append(region)

    def release(self) -> None:
        """Lets the oldest freed regions go, whose addresses may come back; no access to them may be open."""
        kept = sum(each.bytes.size for each in self._freed)
        while kept > KEPT_BYTES:
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

    def _name(self, kind: Kind) -> str:
        self._count[kind] += 1
        return f"{kind.name[0].lower()}{self._count[kind] - 1}"
