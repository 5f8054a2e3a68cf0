"""Memory of the simulated GPU: host memory filled with NaN, between red zones; encoded tensor maps.

Device memory lies at reserved addresses, so that host code recognises device pointers. Freed memory stays in
a quarantine, where its addresses are not reused, so that a use after free is recognised. Red zones and
quarantine are those of AddressSanitizer (Serebryany et al., USENIX ATC 2012).
"""

import bisect
import ctypes
import enum
import errno
import mmap
import struct
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from tuner.core.compiled_code import TensorMapLayout
from tuner.core.device import DEVICE_ADDRESS_BITS, DEVICE_ADDRESS_TAG
from tuner.core.errors import DeviceError, UsageError
from tuner.gpu.ptxsim.device.happens_before import Moment, refused
from tuner.gpu.ptxsim.memory.global_memory import DEVICE_BUFFERS, Pointer, device_address, device_number
from tuner.gpu.ptxsim.memory.tensor_maps import DTYPES, SWIZZLES_BYTES, TensorMap, extent_bytes, tensor_of

# Memory at addresses reserved for simulated device memory, so that host code recognises device pointers.

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


_next_address = [FIRST]  # of the process; addresses are not used again
Bytes = npt.NDArray[np.uint8]
ALIGN_BYTES = 256  # as cuMemAlloc does; CUDA programming guide, device memory accesses
RED_ZONE_BYTES = 4096
RED = 0xA5
POISON = 0xFF  # NaN in every floating-point type
QUARANTINE_BYTES = 128 * 2**20  # of freed memory
MAP_BYTES = 128  # CUtensorMap, cuda.h
MAGIC = b"tuner.tm"
LAYOUT = struct.Struct("<8sQ5Q4Q5H4B")  # magic, address, sizes, strides, box, rank, type, swizzle, padding
RANK_LIMIT = 5  # cuTensorMapEncodeTiled


def device_bytes(size_bytes: int) -> npt.NDArray[np.uint8]:
    """Returns zeroed memory at reserved addresses, never used again; unmapped with the last array over it.

    Raises MemoryError if the system has no free memory or addresses, and for more than LARGEST_BYTES.
    """
    if size_bytes > LARGEST_BYTES:
        raise MemoryError(f"{size_bytes} bytes")
    for _ in range(TRIES):
        wanted = _next_address[0]
        _next_address[0] += -(-size_bytes // STEP_BYTES) * STEP_BYTES
        if wanted + size_bytes > END:
            break
        address = _libc.mmap(wanted, size_bytes, mmap.PROT_READ | mmap.PROT_WRITE, _FLAGS, -1, 0)
        if address == wanted:
            memory: Any = (ctypes.c_uint8 * size_bytes).from_address(address)
            weakref.finalize(memory, _libc.munmap, address, size_bytes).atexit = False
            return np.frombuffer(memory, np.uint8)
        if address != FAILED:  # a kernel before 4.17 treats the address as a hint
            _libc.munmap(address, size_bytes)
        elif ctypes.get_errno() != errno.EEXIST:
            break
    raise MemoryError(f"{size_bytes} bytes")


class MemoryKind(enum.Enum):
    """The kind of a memory region, by the driver call that created it: device, pinned or registered."""

    DEVICE = "device memory"
    PINNED = "pinned memory"  # host memory allocated by the device: cuMemAllocHost
    REGISTERED = "registered memory"  # existing host memory: cuMemHostRegister


@dataclass(eq=False)
class MemoryRegion:
    """A range of memory that simulated kernels can access: an allocation, or registered host memory."""

    name: str  # "d0"
    kind: MemoryKind
    bytes: Bytes
    number: int | None = None  # on its device, part of its address in kernels; None: an address per launch
    freed: Moment | None = None  # moment of the free; the memory still exists in quarantine
    is_written: bool = True  # at least once; False for new device memory
    is_kept: bool = False  # outlives its call on purpose: a result, or memory of a graph
    _slab: Any = field(default=None, repr=False)  # keeps the red zones alive

    @property
    def address(self) -> int:
        return int(self.bytes.ctypes.data)

    @property
    def end(self) -> int:
        return self.address + self.bytes.size

    def holds(self, address: int, size_bytes: int) -> bool:
        return self.address <= address and address + size_bytes <= self.end

    def pointer(self, address: int) -> Pointer:
        """Returns the Pointer of an address in the region or its red zones.

        ``address``: of the host, or as kernels have it (``device_address``).
        """
        number = device_number(address)
        first = device_address(number) if number == self.number else self.address
        return Pointer(self.name, self.bytes, address - first, self.number)

    def poison(self) -> None:
        self.bytes.fill(POISON)

    def stray_bytes(self) -> int:
        """Returns how many bytes of the red zones around the region were overwritten; 0 without red zones."""
        if self._slab is None:
            return 0
        first = self.address - int(self._slab.ctypes.data)
        before = self._slab[first - RED_ZONE_BYTES : first]
        after = self._slab[first + self.bytes.size : first + self.bytes.size + RED_ZONE_BYTES]
        return int(np.count_nonzero(before != RED) + np.count_nonzero(after != RED))


class SimulatedMemory:
    """The memory regions of a simulated GPU by address, including freed ones in quarantine."""

    def __init__(self) -> None:
        self._starts: list[int] = []  # start of each allocation with its red zone, ascending
        self._regions: dict[int, MemoryRegion] = {}  # by start
        self._registered: dict[int, MemoryRegion] = {}
        self._freed: deque[MemoryRegion] = deque()
        self._count = dict.fromkeys(MemoryKind, 0)
        self._numbered: WeakValueDictionary[int, MemoryRegion] = WeakValueDictionary()

    def allocate(self, size_bytes: int, kind: MemoryKind) -> MemoryRegion:
        """Returns a new region of ``size_bytes`` bytes, all 0xFF (NaN), between red zones.

        Raises DeviceError if there is not enough memory.
        """
        with_zones = size_bytes + 2 * RED_ZONE_BYTES + ALIGN_BYTES
        try:
            is_device = kind is MemoryKind.DEVICE
            slab = device_bytes(with_zones) if is_device else np.empty(with_zones, np.uint8)
        except (MemoryError, ValueError) as error:  # ValueError: a size above the address space
            raise refused("OUT_OF_MEMORY", f"found {size_bytes} bytes, allowed what is free here") from error
        first = RED_ZONE_BYTES + -(int(slab.ctypes.data) + RED_ZONE_BYTES) % ALIGN_BYTES
        slab[:first], slab[first + size_bytes :] = RED, RED
        region = self._new(kind, slab[first : first + size_bytes], slab)
        region.poison()
        start = region.address - RED_ZONE_BYTES
        bisect.insort(self._starts, start)
        self._regions[start] = region
        return region

    def register(self, address: int, size_bytes: int) -> MemoryRegion:
        view = np.ctypeslib.as_array((ctypes.c_uint8 * size_bytes).from_address(address))
        region = self._new(MemoryKind.REGISTERED, view)
        self._registered[address] = region
        return region

    def unregister(self, address: int) -> MemoryRegion | None:
        return self._registered.pop(address, None)

    def near(self, address: int) -> MemoryRegion | None:
        """Returns the region whose bytes or red zones contain a host address, also in quarantine; else None.

        An address that a kernel uses (``device_address``) holds the index of its region: that region is
        returned.
        """
        if device_number(address) >= 0:
            return self._numbered.get(device_number(address))
        position = bisect.bisect_right(self._starts, address) - 1
        if position >= 0:
            region = self._regions[self._starts[position]]
            if address < region.end + RED_ZONE_BYTES:
                return region
        return next((region for region in self._registered.values() if region.holds(address, 1)), None)

    def overlapping(self, address: int, size_bytes: int) -> MemoryRegion | None:
        """Returns an allocation, also a freed one, whose bytes or red zones overlap a range.

        None: no allocation.
        """
        position = bisect.bisect_left(self._starts, address + max(size_bytes, 1)) - 1
        region = self._regions[self._starts[position]] if position >= 0 else None
        if region is not None and address < region.end + RED_ZONE_BYTES:
            return region
        return None

    def at(self, address: int) -> MemoryRegion | None:
        """Returns the region that begins at an address, also one in quarantine.

        None: no region begins there.
        """
        region = self.near(address)
        if region is not None and region.address == address:
            return region
        return None

    def live(self) -> tuple[MemoryRegion, ...]:
        """Returns the allocations that are not freed, oldest first, without registered memory."""
        return tuple(region for region in self._regions.values() if region.freed is None)

    def retire(self, region: MemoryRegion) -> None:
        """Puts a freed region into quarantine, unless ``is_kept``: a graph may allocate it again."""
        if not region.is_kept and region not in self._freed:
            self._freed.append(region)

    def release(self) -> None:
        """Deletes the oldest freed regions until at most QUARANTINE_BYTES of freed memory are kept.

        Call it only when no work is pending.
        """
        kept = sum(region.bytes.size for region in self._freed)
        while kept > QUARANTINE_BYTES:
            oldest = self._freed.popleft()
            kept -= oldest.bytes.size
            start = oldest.address - RED_ZONE_BYTES
            del self._regions[start]
            self._starts.remove(start)

    def describe(self, address: int) -> str:
        """Returns a text for an address, for messages: "byte 16 of d0 (64 bytes)", or "host memory"."""
        region = self.near(address)
        if region is None:
            return "host memory"
        return f"byte {address - region.address} of {region.name} ({region.bytes.size} bytes)"

    def _new(self, kind: MemoryKind, content: Bytes, slab: Bytes | None = None) -> MemoryRegion:
        name = f"{kind.name[0].lower()}{self._count[kind]}"
        number = sum(self._count.values())
        self._count[kind] += 1
        region = MemoryRegion(name, kind, content, number if number < DEVICE_BUFFERS else None, _slab=slab)
        if region.number is not None:
            self._numbered[number] = region
        return region


@dataclass(frozen=True)
class EncodedMap:
    """A tensor map of the simulator: the arguments of cuTensorMapEncodeTiled, innermost dimension first."""

    address: int
    sizes: tuple[int, ...]
    strides_bytes: tuple[int, ...]  # of every dimension except the innermost
    box: tuple[int, ...]
    dtype: int
    swizzle: int

    def encode(self) -> bytes:
        """Returns the map as 128 bytes in the simulator's format, in place of a CUtensorMap.

        Raises DeviceError for ranks, types and swizzles that are not simulated.
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
        _, address, *fields, rank, dtype, swizzle, _ = LAYOUT.unpack_from(content)
        sizes = fields[:rank]
        strides = fields[5 : 5 + rank - 1]
        box = fields[9 : 9 + rank]
        return cls(address, tuple(sizes), tuple(strides), tuple(box), dtype, swizzle)

    def tensor(self, near: Callable[[int], MemoryRegion | None]) -> TensorMap:
        """Returns the TensorMap that this map encodes, over the memory of its tensor.

        ``near`` returns the region that holds an address. Raises DeviceError if the tensor is not within one
        region, or for a map that is not simulated.
        """
        layout = TensorMapLayout(self.sizes, self.strides_bytes, self.box, self.dtype, swizzle=self.swizzle)
        extent = extent_bytes(layout)
        region = near(self.address)
        if region is None or not region.holds(self.address, extent):
            raise DeviceError(
                f"tensor map: found {extent} bytes at {self.address:#x}, which are in no buffer"
            )
        try:
            return tensor_of(layout, region.bytes, self.address - region.address)
        except UsageError as error:
            raise DeviceError(str(error)) from error


def is_map(content: bytes) -> bool:
    """Returns whether bytes begin as ``EncodedMap.encode`` writes them."""
    return content[: len(MAGIC)] == MAGIC


def _padded(numbers: tuple[int, ...], count: int) -> tuple[int, ...]:
    return numbers + (0,) * (count - len(numbers))
