"""Global memory: the buffers of a launch, at widely spaced addresses, each with race detection."""

from collections.abc import Iterator

import numpy as np

from tuner.simulator.ptx.dtypes import UNSIGNED, Array, Bools, Indices
from tuner.simulator.ptx.races.access_watch import Watch
from tuner.simulator.ptx.races.global_races import GlobalRaces
from tuner.simulator.ptx.races.unordered import SilentStores, Unordered

# Every buffer has a tebibyte of addresses and begins in the middle: no overrun reaches another buffer.
SLOT_BITS = 40
FIRST_BYTE = 1 << (SLOT_BITS - 1)


class GlobalBuffer:
    """An array in simulated global memory, read and written in place, with its race detector."""

    def __init__(self, name: str, array: Array, cell_bytes: int, is_read_only: bool = False) -> None:
        self.name = name
        self.bytes = array.reshape(-1).view(np.uint8)
        self.is_read_only = is_read_only
        self.races = GlobalRaces(self.bytes.size, cell_bytes)
        self._views = {
            size: self.bytes[: self.bytes.size // size * size].view(dtype) for size, dtype in UNSIGNED.items()
        }

    def view(self, item_bytes: int) -> Array:
        """Returns the buffer's memory, not a copy, as unsigned integers of 1, 2, 4 or 8 bytes.

        Bytes at the end that are no whole integer are left out.
        """
        return self._views[item_bytes]


class GlobalMemory:
    """The buffers of a launch, each at its global address."""

    def __init__(self) -> None:
        self._buffers: list[GlobalBuffer] = []

    @property
    def buffers(self) -> tuple[GlobalBuffer, ...]:
        """Returns the buffers in the order in which they were added."""
        return tuple(self._buffers)

    def add(self, buffer: GlobalBuffer) -> int:
        """Adds a buffer to global memory; returns the address that the buffer gets."""
        self._buffers.append(buffer)
        return len(self._buffers) << SLOT_BITS | FIRST_BYTE

    def parts(
        self, watch: Watch, lanes: Indices, addresses: Indices, size_bytes: int, align_bytes: int = 0
    ) -> Iterator[tuple[GlobalBuffer, Bools | slice, Indices]]:
        """Yields (buffer, mask or slice of the lanes that access it, byte offsets in it) per accessed buffer.

        Each lane accesses ``size_bytes`` bytes, aligned to ``align_bytes`` (0: to its size). Raises Fault for
        an address in no buffer, an access beyond a buffer or a misaligned address.
        """
        watch.require_aligned(lanes, addresses, align_bytes or size_bytes)
        slots = addresses >> SLOT_BITS
        first = int(slots[0])
        if (slots == first).all():
            yield self._part(watch, lanes, addresses, size_bytes, first, slice(None))
            return
        for slot in np.unique(slots):
            is_here = slots == slot
            yield self._part(watch, lanes[is_here], addresses[is_here], size_bytes, int(slot), is_here)

    def _part(
        self, watch: Watch, lanes: Indices, addresses: Indices, size: int, slot: int, which: Bools | slice
    ) -> tuple[GlobalBuffer, Bools | slice, Indices]:
        if not 1 <= slot <= len(self._buffers):
            reason = f"found global address {int(addresses[0]):#x}, which is in no buffer"
            raise watch.out_of_bounds(int(lanes[0]), reason)
        buffer = self._buffers[slot - 1]
        starts = addresses - (slot << SLOT_BITS | FIRST_BYTE)
        is_out = (starts < 0) | (starts + size > buffer.bytes.size)
        if is_out.any():
            worst = int(is_out.argmax())
            reason = (
                f"found {size} bytes at byte {int(starts[worst])} of {buffer.name}, "
                f"which has {buffer.bytes.size}"
            )
            raise watch.out_of_bounds(int(lanes[worst]), reason)
        return buffer, which, starts

    def load(
        self, watch: Watch, lanes: Indices, addresses: Indices, item_bytes: int, count: int, is_strong: bool
    ) -> Array:
        """Loads ``count`` unsigned integers per lane from global addresses: [lane, element].

        Reports races as hazards. Raises Fault for an address out of bounds or misaligned.
        """
        size = item_bytes * count
        watch.note(lanes, addresses, size)
        found = np.empty((len(lanes), count), UNSIGNED[item_bytes])
        for buffer, which, starts in self.parts(watch, lanes, addresses, size):
            cells = buffer.races.cells(starts, size)
            _report(
                watch, buffer, buffer.races.read(watch.clocks, lanes[which], cells, is_strong), lanes[which]
            )
            found[which] = buffer.view(item_bytes)[starts[:, None] // item_bytes + np.arange(count)]
        return found

    def load_bytes(self, watch: Watch, lanes: Indices, addresses: Indices, size_bytes: int) -> Array:
        """Loads ``size_bytes`` bytes per lane from global addresses of any alignment: [lane, byte].

        Reports races as hazards. Raises Fault for an address out of bounds.
        """
        found = np.empty((len(lanes), size_bytes), np.uint8)
        for buffer, which, starts in self.parts(watch, lanes, addresses, size_bytes, 1):
            cells = buffer.races.cells(starts, size_bytes)
            _report(watch, buffer, buffer.races.read(watch.clocks, lanes[which], cells, False), lanes[which])
            found[which] = buffer.bytes[starts[:, None] + np.arange(size_bytes)]
        return found

    def store(self, watch: Watch, lanes: Indices, addresses: Indices, values: Array, is_strong: bool) -> None:
        """Stores unsigned integers ``values`` [lane, element] at the lanes' global addresses.

        Reports races as hazards. Raises Fault for an address out of bounds or misaligned, or in constant
        memory.
        """
        item, count = values.itemsize, values.shape[1]
        for buffer, which, starts in self.parts(watch, lanes, addresses, item * count):
            if buffer.is_read_only:
                raise watch.out_of_bounds(int(lanes[0]), f"found a write to {buffer.name}, which is constant")
            cells = buffer.races.cells(starts, item * count)
            found = buffer.races.write(watch.clocks, lanes[which], cells, is_strong)
            before = _content(buffer, starts, item * count, cells) if found else None
            buffer.view(item)[starts[:, None] // item + np.arange(count)] = values[which]
            if before is not None:
                mine = np.ascontiguousarray(values[which]).view(np.uint8).reshape(before.shape)
                after = _content(buffer, starts, item * count, cells)
                silent = SilentStores(_same(mine, before), _same(mine, after))
                _report(watch, buffer, found, lanes[which], silent)

    def update_starts(
        self, watch: Watch, lanes: Indices, addresses: Indices, item_bytes: int, count: int
    ) -> Iterator[tuple[Array, Bools | slice, Indices]]:
        """Yields, per buffer that an atomic updates, the memory and the indices to update; changes no memory.

        A tuple holds the buffer as unsigned integers of ``item_bytes``, the mask or slice of the lanes that
        access it, and the index of the first of each lane's ``count`` integers. Records the access; reports
        races. Raises Fault for an address out of bounds or misaligned.
        """
        size = item_bytes * count
        for buffer, which, starts in self.parts(watch, lanes, addresses, size):
            cells = buffer.races.cells(starts, size)
            buffer.races.note_read(cells)
            _report(watch, buffer, buffer.races.write(watch.clocks, lanes[which], cells, True), lanes[which])
            yield buffer.view(item_bytes), which, starts // item_bytes


def _content(buffer: GlobalBuffer, starts: Indices, size_bytes: int, cells: Indices) -> Array:
    """Returns the bytes of accesses as [access, cell, byte]; an access may be narrower than a cell."""
    found: Array = buffer.bytes[starts[:, None] + np.arange(size_bytes)].reshape(*cells.shape, -1)
    return found


def _same(mine: Array, other: Array) -> Bools:
    same: Bools = (mine == other).all(axis=2)
    return same


def _report(
    watch: Watch,
    buffer: GlobalBuffer,
    found: list[Unordered],
    lanes: Indices,
    silent: SilentStores | None = None,
) -> None:
    watch.report(found, lanes, buffer.name, buffer.races.cell_bytes, silent)
