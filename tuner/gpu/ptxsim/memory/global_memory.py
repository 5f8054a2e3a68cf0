"""Global memory: the buffers of a launch, their touched bytes, accesses by address; and all state spaces.

Buffers lie at widely spaced addresses, each with race detection. A buffer of a simulated device has the same
address in each launch, so that a kernel can use an address that an earlier one has stored. Addresses as the
host has them, which a program may put into memory too, are looked up (``Find``) where a kernel uses them.
"""

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from tuner.core.errors import UsageError
from tuner.gpu.ptxsim.memory.access_log import Watch
from tuner.gpu.ptxsim.memory.global_races import GlobalRaces
from tuner.gpu.ptxsim.memory.hazards import SilentStores, Unordered
from tuner.gpu.ptxsim.memory.shared_memory import POISON, SharedMemory
from tuner.gpu.ptxsim.ptx.defects import Defect, Fault
from tuner.gpu.ptxsim.ptx.dtypes import UNSIGNED, Array, Bools, Indices

# Every buffer has a tebibyte of addresses and begins in the middle: no overrun reaches another buffer.
SLOT_BITS = 40
FIRST_BYTE = 1 << (SLOT_BITS - 1)
# Slots of buffers that have an address for one launch only; below are addresses of x86-64, of 47 bits.
FIRST_OF_LAUNCH = 1 << 7
FIRST_OF_DEVICE = 1 << 12  # slot of buffer 0 of a device
GLOBAL_BITS = 60  # of an address of global memory
DEVICE_BUFFERS = (1 << (GLOBAL_BITS - SLOT_BITS)) - FIRST_OF_DEVICE  # that have an address
# Windows of the state spaces in generic addresses; a global address is its own generic address. The offset
# makes a generic address that is truncated to 32 bits an invalid shared address.
WINDOW_BITS = GLOBAL_BITS
WINDOW_OFFSET = 1 << 24
SPACES = ("global", "shared", "local", "param")
WINDOWS = {name: (index << WINDOW_BITS) + WINDOW_OFFSET for index, name in enumerate(SPACES) if index}


@dataclass(frozen=True, eq=False)
class Touched:
    """The byte ranges of a buffer that a launch wrote, and that it read before: [range, (first, end)]."""

    address: int  # of the array in this process
    reads: Indices  # bytes read before the launch wrote them
    writes: Indices
    plain_reads: Indices  # those of ``reads`` and ``writes`` that are not accessed atomically only
    plain_writes: Indices

    @classmethod
    def of(cls, address: int, size_bytes: int, races: GlobalRaces) -> "Touched":
        """Returns the byte ranges, in whole cells, that a buffer's race detector has recorded."""
        masks = [races.read_first, races.written]
        if races.has_strong:
            masks += [mask & ~races.only_strong for mask in masks]
        ranges = [np.minimum(runs(mask) * races.cell_bytes, size_bytes) for mask in masks]
        return cls(address, ranges[0], ranges[1], ranges[-2], ranges[-1])

    def written(self, items: int, item_bytes: int) -> Bools:
        flags = np.zeros(items, bool)
        for first, end in self.writes:
            flags[first // item_bytes : -(-end // item_bytes)] = True
        return flags


def runs(flags: Bools) -> Indices:
    """Returns the runs of True in ``flags``: [run, (first, end)]; the end is exclusive."""
    changes = np.flatnonzero(flags[1:] != flags[:-1]) + 1
    first = np.flatnonzero(flags[:1])
    end = np.flatnonzero(flags[-1:]) + flags.size
    return np.concatenate((first, changes, end)).reshape(-1, 2)


@dataclass(frozen=True, eq=False)
class Pointer:
    """An address in an array; a kernel with such an argument may access the whole array."""

    name: str  # of the array, for messages
    array: Array
    offset_bytes: int
    number: int | None = None  # of the array on its device: its address is the same in each launch


Find: TypeAlias = Callable[[int], Pointer | None]  # an address in no buffer of the launch -> where it points


def device_address(number: int) -> int:
    """Returns the address, in kernels, of the buffer of a device with index ``number``."""
    return FIRST_OF_DEVICE + number << SLOT_BITS | FIRST_BYTE


def device_number(address: int) -> int:
    """Returns the index of the device's buffer whose addresses in kernels contain this one; else negative."""
    return (address >> SLOT_BITS) - FIRST_OF_DEVICE


class GlobalBuffer:
    """An array in simulated global memory, accessed in place, with its race detector."""

    def __init__(self, name: str, array: Array, cell_bytes: int, is_read_only: bool = False) -> None:
        self.name = name
        self.bytes = array.reshape(-1).view(np.uint8)
        self.is_read_only = is_read_only
        self.races = GlobalRaces(self.bytes.size, cell_bytes)
        self._views = {
            size: self.bytes[: self.bytes.size // size * size].view(dtype) for size, dtype in UNSIGNED.items()
        }

    def view(self, item_bytes: int) -> Array:
        return self._views[item_bytes]


class GlobalMemory:
    """The buffers of a launch by their global addresses."""

    def __init__(self, cell_bytes: int = 1, find: Find = lambda _address: None) -> None:
        """``cell_bytes``: granularity of race detection.

        ``find``: looks up addresses that are in no buffer.
        """
        self._buffers: dict[int, GlobalBuffer] = {}  # by slot
        self._arrays: dict[int, GlobalBuffer] = {}  # by host address
        self._addresses: dict[tuple[int, int | None], int] = {}  # by host address and number on the device
        self._cell_bytes = cell_bytes
        self._find = find
        self._count = 0  # buffers that have an address for this launch only

    @property
    def buffers(self) -> tuple[GlobalBuffer, ...]:
        return tuple(dict.fromkeys(self._buffers.values()))

    def add(self, buffer: GlobalBuffer) -> int:
        slot = FIRST_OF_LAUNCH + self._count
        self._count += 1
        self._buffers[slot] = buffer
        return slot << SLOT_BITS | FIRST_BYTE

    def place(self, name: str, array: Array, number: int | None = None) -> tuple[int, GlobalBuffer]:
        """Returns the global address and the buffer of an array, which is added at its first use.

        ``name``: for messages; ``number``: its index on its device, None for an address in this launch
        only. Arrays at one host address share a buffer. Raises UsageError for an array that is not
        C-contiguous.
        """
        if not array.flags.c_contiguous:
            raise UsageError(f"argument {name}: the array is not C-contiguous")
        key = array.__array_interface__["data"][0]
        if key not in self._arrays:
            self._arrays[key] = GlobalBuffer(name, array, self._cell_bytes)
        buffer = self._arrays[key]
        if (key, number) not in self._addresses:
            if number is None:
                self._addresses[key, number] = self.add(buffer)
            else:
                self._addresses[key, number] = device_address(number)
            self._buffers[self._addresses[key, number] >> SLOT_BITS] = buffer
        return self._addresses[key, number], buffer

    def touched(self) -> tuple[Touched, ...]:
        return tuple(Touched.of(key, buffer.bytes.size, buffer.races) for key, buffer in self._arrays.items())

    def parts(
        self, watch: Watch, lanes: Indices, addresses: Indices, size_bytes: int, align_bytes: int = 0
    ) -> Iterator[tuple[GlobalBuffer, Bools | slice, Indices]]:
        """Yields (buffer, mask or slice of the lanes, byte offsets in it) per buffer that is accessed.

        ``size_bytes``: per lane; ``align_bytes`` 0: ``size_bytes``. Raises Fault for an address in no buffer,
        outside of its bytes, or misaligned.
        """
        watch.require_aligned(lanes, addresses, align_bytes or size_bytes)
        slots = addresses >> SLOT_BITS
        first = int(slots[0])
        if first in self._buffers and (slots == first).all():
            yield self._part(watch, lanes, addresses, size_bytes, first, slice(None))
            return
        addresses = self._placed(addresses)
        slots = addresses >> SLOT_BITS
        for slot in np.unique(slots):
            is_here = slots == slot
            yield self._part(watch, lanes[is_here], addresses[is_here], size_bytes, int(slot), is_here)

    def _placed(self, addresses: Indices) -> Indices:
        """Adds the buffers that ``find`` knows for addresses in no buffer; returns the addresses in buffers.

        An address that ``find`` does not know is returned unchanged.
        """
        slots = addresses >> SLOT_BITS
        others = [slot for slot in np.unique(slots) if int(slot) not in self._buffers]
        placed = addresses.copy()
        unknown = np.isin(slots, others)
        while unknown.any():
            address = int(addresses[unknown.argmax()])
            pointer = self._find(address)
            if pointer is None:
                break
            # other unknown addresses in this buffer are placed with it
            start, buffer = self.place(pointer.name, pointer.array, pointer.number)
            offsets = addresses - (address - pointer.offset_bytes)
            is_same = (offsets >= 0) & (offsets < buffer.bytes.size) | (addresses == address)
            placed[unknown & is_same] = start + offsets[unknown & is_same]
            unknown &= ~is_same
        return placed

    def _part(
        self, watch: Watch, lanes: Indices, addresses: Indices, size: int, slot: int, which: Bools | slice
    ) -> tuple[GlobalBuffer, Bools | slice, Indices]:
        if slot not in self._buffers:
            reason = f"found global address {int(addresses[0]):#x}, which is in no buffer"
            raise watch.out_of_bounds(int(lanes[0]), reason)
        buffer = self._buffers[slot]
        starts = addresses - (slot << SLOT_BITS | FIRST_BYTE)
        is_out = (starts < 0) | (starts + size > buffer.bytes.size)
        of = f"of {buffer.name}, which has {buffer.bytes.size}"
        watch.require_inside(lanes, is_out, lambda at: f"found {size} bytes at byte {starts[at]} {of}")
        return buffer, which, starts

    def load(
        self, watch: Watch, lanes: Indices, addresses: Indices, item_bytes: int, count: int, is_strong: bool
    ) -> Array:
        """Loads ``count`` unsigned integers of ``item_bytes`` per lane: [lane, element]; reports races.

        ``is_strong``: a strong operation of the PTX memory model. Raises Fault for an invalid address.
        """
        size = item_bytes * count
        watch.note(lanes, addresses, size)
        values = np.empty((len(lanes), count), UNSIGNED[item_bytes])
        for buffer, which, starts in self.parts(watch, lanes, addresses, size):
            cells = buffer.races.cells(starts, size)
            unordered = buffer.races.read(watch.clocks, lanes[which], cells, is_strong)
            _report(watch, buffer, unordered, lanes[which])
            values[which] = buffer.view(item_bytes)[starts[:, None] // item_bytes + np.arange(count)]
        return values

    def load_bytes(self, watch: Watch, lanes: Indices, addresses: Indices, size_bytes: int) -> Array:
        content = np.empty((len(lanes), size_bytes), np.uint8)
        for buffer, which, starts in self.parts(watch, lanes, addresses, size_bytes, 1):
            cells = buffer.races.cells(starts, size_bytes)
            _report(watch, buffer, buffer.races.read(watch.clocks, lanes[which], cells, False), lanes[which])
            content[which] = buffer.bytes[starts[:, None] + np.arange(size_bytes)]
        return content

    def store(self, watch: Watch, lanes: Indices, addresses: Indices, values: Array, is_strong: bool) -> None:
        """Stores unsigned integers [lane, element] from each lane's global address on; reports races.

        ``is_strong``: a strong operation of the PTX memory model. Raises Fault for an invalid address, or
        constant memory.
        """
        item = values.itemsize
        count = values.shape[1]
        for buffer, which, starts in self.parts(watch, lanes, addresses, item * count):
            _require_writable(watch, buffer, lanes)
            cells = buffer.races.cells(starts, item * count)
            found = buffer.races.write(watch.clocks, lanes[which], cells, is_strong)
            before = _content(buffer, starts, item * count, cells) if found else None
            buffer.view(item)[starts[:, None] // item + np.arange(count)] = values[which]
            if before is not None:
                after = _content(buffer, starts, item * count, cells)
                silent = SilentStores.of(values[which], before, after)
                _report(watch, buffer, found, lanes[which], silent)

    def update_starts(
        self, watch: Watch, lanes: Indices, addresses: Indices, item_bytes: int, count: int, order: str
    ) -> Iterator[tuple[Array, Bools | slice, Indices]]:
        """Yields (memory as integers, mask or slice of the lanes, first indices) per buffer to update.

        For atomics: records the accesses and reports races; the caller changes the memory. ``order``: of
        memory accesses between blocks, "relaxed" for none.
        """
        size = item_bytes * count
        for buffer, which, starts in self.parts(watch, lanes, addresses, size):
            _require_writable(watch, buffer, lanes)
            cells = buffer.races.cells(starts, size)
            buffer.races.note_read(cells)
            _report(watch, buffer, buffer.races.write(watch.clocks, lanes[which], cells, True), lanes[which])
            if order != "relaxed":
                buffer.races.synchronise(watch.clocks, lanes[which], cells, order)
            yield buffer.view(item_bytes), which, starts // item_bytes


def _require_writable(watch: Watch, buffer: GlobalBuffer, lanes: Indices) -> None:
    if buffer.is_read_only:
        raise watch.out_of_bounds(int(lanes[0]), f"found a write to {buffer.name}, which is constant")


def _content(buffer: GlobalBuffer, starts: Indices, size_bytes: int, cells: Indices) -> Array:
    """Returns the bytes of accesses as [access, cell, byte]; an access may be narrower than a cell."""
    found: Array = buffer.bytes[starts[:, None] + np.arange(size_bytes)].reshape(*cells.shape, -1)
    return found


def _report(
    watch: Watch,
    buffer: GlobalBuffer,
    found: list[Unordered],
    lanes: Indices,
    silent: SilentStores | None = None,
) -> None:
    watch.report(found, lanes, buffer.name, buffer.races.cell_bytes, silent)


class Spaces:
    """The state spaces of resident blocks: global, shared, local, parameters (PTX ISA, "State Spaces")."""

    def __init__(
        self, watch: Watch, global_: GlobalMemory, shared: SharedMemory, local_bytes: int, parameters: Array
    ) -> None:
        self._watch = watch
        self.global_ = global_
        self.shared = shared
        self._parameters = parameters
        self._local = np.full((watch.geometry.lanes, max(local_bytes, 1)), POISON, np.uint8)
        self._local_bytes = local_bytes

    def checksum(self) -> int:
        checksum = 0
        checksum = zlib.crc32(self.shared.bytes.data, zlib.crc32(self._local.data, checksum))
        for buffer in self.global_.buffers:
            checksum = zlib.crc32(buffer.bytes.data, checksum)
        return checksum

    def load(
        self,
        lanes: Indices,
        addresses: Indices,
        space: str,
        item_bytes: int,
        count: int,
        is_strong: bool = False,
    ) -> Array:
        """Loads ``count`` unsigned integers of ``item_bytes`` per lane: [lane, element].

        ``space``: "global", "shared", "local", "param", or "generic": each address names its space. Raises
        Fault for an invalid address.
        """
        values = np.empty((len(lanes), count), UNSIGNED[item_bytes])
        for name, which, inner in _named(space, addresses):
            some = lanes[which]
            if name == "shared":
                values[which] = self.shared.load(some, inner, item_bytes, count)
            elif name == "global":
                values[which] = self.global_.load(self._watch, some, inner, item_bytes, count, is_strong)
            else:
                limit = self._local_bytes if name == "local" else self._parameters.size
                columns = self._columns(some, inner, item_bytes * count, limit, name)
                is_local = name == "local"
                content = self._local[some[:, None], columns] if is_local else self._parameters[columns]
                values[which] = np.ascontiguousarray(content).view(UNSIGNED[item_bytes])
        return values

    def store(
        self, lanes: Indices, addresses: Indices, space: str, values: Array, is_strong: bool = False
    ) -> None:
        """Stores ``values`` [lane, element], unsigned integers, from each lane's byte address on.

        ``space``: as in ``load``, but a store to "param" raises Fault. ``is_strong``: a strong operation of
        the PTX memory model (.relaxed, .volatile, ...), for the race detection on global memory.
        """
        for name, which, inner in _named(space, addresses):
            some = lanes[which]
            if name == "shared":
                self.shared.store(some, inner, values[which])
            elif name == "global":
                self.global_.store(self._watch, some, inner, values[which], is_strong)
            elif name == "local":
                content = np.ascontiguousarray(values[which]).view(np.uint8)
                columns = self._columns(some, inner, content.shape[1], self._local_bytes, "local")
                self._local[some[:, None], columns] = content
            else:
                raise Fault(Defect.ILLEGAL, "found a store to a parameter")

    def updates(
        self, lanes: Indices, addresses: Indices, space: str, item_bytes: int, count: int, order: str
    ) -> Iterator[tuple[Array, Bools | slice, Indices]]:
        """Yields (memory as integers, mask or slice of the lanes, first indices) per memory to update.

        For atomics, of memory ``order`` between blocks; raises Fault for memory that is neither global nor
        shared.
        """
        for name, which, inner in _named(space, addresses):
            if name == "shared":
                numbers, starts = self.shared.update_start(lanes[which], inner, item_bytes, count)
                yield numbers, which, starts
                continue
            if name != "global":
                raise Fault(Defect.ILLEGAL, f"found an atomic on {name} memory")
            some = self.global_.update_starts(self._watch, lanes[which], inner, item_bytes, count, order)
            for numbers, part, starts in some:
                chosen = np.zeros(len(lanes), bool)
                chosen[np.arange(len(lanes))[which][part]] = True
                yield numbers, chosen, starts

    def _columns(self, lanes: Indices, addresses: Indices, size: int, limit: int, name: str) -> Indices:
        self._watch.require_aligned(lanes, addresses, min(size, 16))
        is_out = (addresses < 0) | (addresses + size > limit)
        self._watch.require_inside(
            lanes,
            is_out,
            lambda at: f"found {size} bytes at {name} address {addresses[at]}, allowed up to {limit}",
        )
        return addresses[:, None] + np.arange(size)


def _named(space: str, addresses: Indices) -> Iterator[tuple[str, Bools | slice, Indices]]:
    """Yields (state space, mask or slice of the accesses to the space, their addresses in the space)."""
    if space != "generic":
        yield space, slice(None), addresses
        return
    numbers = addresses >> WINDOW_BITS
    for number in np.unique(numbers):
        if not 0 <= number < len(SPACES):
            reason = f"found generic address {int(addresses[numbers == number][0]):#x}"
            raise Fault(Defect.OUT_OF_BOUNDS, reason)
        name = SPACES[int(number)]
        is_here = numbers == number
        yield name, is_here, addresses[is_here] - WINDOWS.get(name, 0)
