"""The shared memory of resident blocks: bounds, bank conflicts and race detection."""

import numpy as np

from tuner.simulator.ptx.dtypes import UNSIGNED, Array, Bools, Indices
from tuner.simulator.ptx.memory.cluster_memory import ClusterMemory
from tuner.simulator.ptx.races.access_watch import Watch
from tuner.simulator.ptx.races.shared_races import SharedRaces
from tuner.simulator.ptx.races.unordered import SilentStores, Unordered

POISON = 0xFF  # floats made of this byte are NaN
STRIDE_BYTES = 1024  # each block begins at a multiple, as on the device


class SharedMemory:
    """The shared memory of all resident blocks in one array of bytes, ``stride_bytes`` per block."""

    def __init__(self, watch: Watch, limit_bytes: int, cell_bytes: int, async_readers: int) -> None:
        self._watch = watch
        self.cluster = ClusterMemory(watch)
        self.limit_bytes = limit_bytes
        self.stride_bytes = -(-limit_bytes // STRIDE_BYTES) * STRIDE_BYTES
        count = self.stride_bytes * len(watch.geometry.blocks)
        self.bytes = np.full(count, POISON, np.uint8)
        self.races = SharedRaces(watch.clocks, count, cell_bytes, async_readers)
        self._views = {size: self.bytes.view(dtype) for size, dtype in UNSIGNED.items()}

    def starts(self, lanes: Indices, addresses: Indices, size_bytes: int, align_bytes: int = 0) -> Indices:
        """Returns each lane's byte offset in the array of all blocks, for its shared address.

        Each lane accesses ``size_bytes`` bytes, aligned to ``align_bytes`` (0: to its size). Raises Fault for
        an address that is misaligned or out of bounds.
        """
        self._watch.require_aligned(lanes, addresses, align_bytes or size_bytes)
        blocks, addresses = self.cluster.located(lanes, addresses)
        is_out = (addresses < 0) | (addresses + size_bytes > self.limit_bytes)
        if is_out.any():
            worst = int(is_out.argmax())
            reason = (
                f"found {size_bytes} bytes at shared address {int(addresses[worst])}, "
                f"allowed up to {self.limit_bytes}"
            )
            raise self._watch.out_of_bounds(int(lanes[worst]), reason)
        return addresses + blocks * self.stride_bytes

    def load(self, lanes: Indices, addresses: Indices, item_bytes: int, count: int) -> Array:
        """Loads ``count`` unsigned integers per lane from shared addresses: [lane, element].

        Counts bank conflicts; reports races and uninitialised memory. Raises Fault for a bad address.
        """
        size = item_bytes * count
        starts = self.starts(lanes, addresses, size)
        self._watch.count_shared(lanes, addresses, size)
        self._report(self.races.read(lanes, self.races.cells(starts, size)), lanes)
        found: Array = self._views[item_bytes][starts[:, None] // item_bytes + np.arange(count)]
        return found

    def load_rows(self, lanes: Indices, addresses: Indices) -> Array:
        """Loads, for ldmatrix, the 16 bytes at each lane's shared address: uint16 [lane, 8 elements].

        Counts bank conflicts; reports races and uninitialised memory. Raises Fault for a bad address.
        """
        starts = self.starts(lanes, addresses, 16)
        self._watch.count_shared(lanes, addresses, 16)
        self._report(self.races.read(lanes, self.races.cells(starts, 16), is_collective=True), lanes)
        found: Array = self._views[2][starts[:, None] // 2 + np.arange(8)]
        return found

    def store(self, lanes: Indices, addresses: Indices, values: Array) -> None:
        """Stores unsigned integers ``values`` [lane, element] at the lanes' shared addresses.

        Counts bank conflicts; reports races. Raises Fault for a bad address.
        """
        item, size = values.itemsize, values.itemsize * values.shape[1]
        starts = self.starts(lanes, addresses, size)
        self._watch.count_shared(lanes, addresses, size)
        cells = self.races.cells(starts, size)
        found = self.races.write(lanes, cells)
        before = self._content(cells) if found else None
        self._views[item][starts[:, None] // item + np.arange(values.shape[1])] = values
        if before is not None:
            mine = np.ascontiguousarray(values).view(np.uint8).reshape(before.shape)
            self._report(found, lanes, SilentStores(_same(mine, before), _same(mine, self._content(cells))))

    def update_start(
        self, lanes: Indices, addresses: Indices, item_bytes: int, count: int
    ) -> tuple[Array, Indices]:
        """Returns what an atomic updates: (shared memory as integers, index of each lane's first integer).

        The integers have ``item_bytes`` bytes; each lane updates ``count`` of them. Changes no memory, but
        records the access and reports races. Raises Fault for a bad address.
        """
        size = item_bytes * count
        starts = self.starts(lanes, addresses, size)
        self._report(self.races.atomic(lanes, self.races.cells(starts, size)), lanes)
        return self._views[item_bytes], starts // item_bytes

    def begin_copy(self, lanes: Indices, addresses: Indices, size_bytes: int) -> Indices:
        """Begins an asynchronous write of ``size_bytes`` per lane; returns byte offsets for ``finish_copy``.

        Until then the bytes are NaN, and accesses to them are reported. Raises Fault for a bad address.
        """
        starts = self.starts(lanes, addresses, size_bytes)
        self._watch.count_shared(lanes, addresses, size_bytes)
        found = self.races.write(lanes, self.races.cells(starts, size_bytes), is_pending=True)
        self._report(found, lanes)
        self.bytes[starts[:, None] + np.arange(size_bytes)] = POISON
        return starts

    def finish_copy(self, lanes: Indices, starts: Indices, content: Array) -> None:
        """Completes an asynchronous write of ``content`` [lane, byte], at the offsets from ``begin_copy``."""
        self.bytes[starts[:, None] + np.arange(content.shape[1])] = content
        self.races.complete(lanes, self.races.cells(starts, content.shape[1]))

    def report_agent(self, found: list[Unordered], lane: int) -> None:
        """Reports unordered accesses of a bulk copy or wgmma that ``lane`` issued, as hazards."""
        self._report(found, np.array([lane]))

    def _content(self, cells: Indices) -> Array:
        """Returns the bytes of cells: [access, cell, byte]."""
        size = self.races.cell_bytes
        found: Array = self.bytes[cells[:, :, None] * size + np.arange(size)]
        return found

    def _report(self, found: list[Unordered], lanes: Indices, silent: SilentStores | None = None) -> None:
        self._watch.report(found, lanes, "shared", self.races.cell_bytes, silent)


def _same(mine: Array, other: Array) -> Bools:
    same: Bools = (mine == other).all(axis=2)
    return same
