"""Bulk copies (TMA): loads that complete at an mbarrier, stores that complete in groups.

A load's bytes are NaN from its issue until somebody waits at the mbarrier; a store reads at its issue, and
its source is looked at again when it is waited for.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from tuner.ptx.defects import Defect, Fault
from tuner.ptx.dtypes import Array, Indices
from tuner.ptx.mbarriers import MBarrier, MBarriers
from tuner.ptx.shared_memory import POISON, SharedMemory
from tuner.ptx.watch import Watch


@dataclass
class BulkLoad:
    """A load in flight."""

    places: Indices  # of each byte in the shared memory of all blocks
    content: Array
    clock: int  # of its barrier's column


@dataclass
class BulkStore:
    """A store in flight: what it read, and how it writes."""

    places: Indices
    content: Array
    clock: int
    write: Callable[[Array], None]


@dataclass
class BulkCopies:
    """The bulk copies of some blocks."""

    watch: Watch
    shared: SharedMemory
    mbarriers: MBarriers
    store_column: int  # of the vector clocks: the reads of stores
    rng: np.random.Generator | None  # delays loads where there is one
    fenced: Array = field(init=False)  # clock of each lane's last proxy fence
    _loads: dict[tuple[int, int], list[BulkLoad]] = field(default_factory=dict)  # (block, mbarrier address)
    _open_stores: dict[int, list[BulkStore]] = field(default_factory=dict)  # by lane
    _store_groups: dict[int, list[list[BulkStore]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.fenced = np.zeros(self.watch.geometry.lanes, np.int32)

    @property
    def has_loads(self) -> bool:
        """Tells whether loads are in flight."""
        return bool(self._loads)

    def fence(self, lanes: Indices) -> None:
        """Makes the writes of threads visible to bulk copies and wgmma."""
        self.fenced[lanes] = self.watch.clocks.own(lanes)
        self.watch.clocks.tick(lanes)

    def load(self, lane: int, places: Indices, content: Array, mbarrier: int) -> None:
        """Begins a load of a thread to shared addresses of its block."""
        barrier = self.mbarriers.at(lane, mbarrier)
        block = int(self.watch.geometry.place[lane])
        whole = self._in_memory(lane, places)
        for address in self.mbarriers.addresses_of(block):
            if (places >> 3 == address >> 3).any():
                raise Fault(Defect.OUT_OF_BOUNDS, f"found a bulk copy over the mbarrier at {address}")
        cells = np.unique(whole // self.shared.races.cell_bytes)
        clock, found = self.shared.races.async_write(lane, cells, barrier.column)
        self.shared.report_agent(found, lane)
        self.shared.bytes[whole] = POISON
        self._loads.setdefault((block, mbarrier), []).append(BulkLoad(whole, content, clock))
        self.mbarriers.has_progress = True

    def land(self, block: int, mbarrier: int, barrier: MBarrier, must: bool) -> None:
        """Ends the loads that complete at an mbarrier; a random schedule may delay them unless they must."""
        if (block, mbarrier) not in self._loads:
            return
        if not must and self.rng is not None and self.rng.random() < 0.5:
            return
        for load in self._loads.pop((block, mbarrier)):
            self.shared.bytes[load.places] = load.content
            self.mbarriers.deliver(barrier, len(load.content), load.clock)

    def store(self, lane: int, places: Indices, write: Callable[[Array], None]) -> None:
        """Begins a store of a thread from shared addresses of its block."""
        whole = self._in_memory(lane, places)
        cells = np.unique(whole // self.shared.races.cell_bytes)
        races = self.shared.races
        clock, found = races.async_read(np.array([lane]), cells, self.store_column, self.fenced)
        self.shared.report_agent(found, lane)
        content = self.shared.bytes[whole].copy()
        self._open_stores.setdefault(lane, []).append(BulkStore(whole, content, clock, write))

    def commit(self, lanes: Indices) -> None:
        """Ends the current group of stores of threads."""
        for lane in lanes.tolist():
            self._store_groups.setdefault(lane, []).append(self._open_stores.pop(lane, []))

    def wait(self, lanes: Indices, newest: int) -> None:
        """Completes the stores of threads but for those in their ``newest`` groups."""
        for lane in lanes.tolist():
            groups = self._store_groups.get(lane, [])
            while len(groups) > newest:
                for store in groups.pop(0):
                    self._finish(lane, store)

    def _finish(self, lane: int, store: BulkStore) -> None:
        if (self.shared.bytes[store.places] != store.content).any():
            who = self.watch.geometry.who(lane)
            self.watch.log.report(
                Defect.IN_FLIGHT,
                self.watch.instruction,
                lambda: f"the source of a bulk store of {who} changed",
            )
        store.write(store.content)
        self.watch.clocks.learn_agent(np.array([lane]), self.store_column, store.clock)

    def _in_memory(self, lane: int, places: Indices) -> Indices:
        """Returns where bytes stand in the shared memory of all blocks."""
        if places.min() < 0 or places.max() >= self.shared.limit_bytes:
            reason = f"found a bulk copy at shared bytes {places.min()} to {places.max()}"
            raise self.watch.out_of_bounds(lane, f"{reason}, allowed up to {self.shared.limit_bytes}")
        return places + int(self.watch.geometry.place[lane]) * self.shared.stride_bytes

    def report_unfinished(self) -> None:
        """Reports copies that nobody waited for."""
        stores = any(self._open_stores.values()) or any(map(any, self._store_groups.values()))
        for is_left, what in ((self.has_loads, "load"), (stores, "store")):
            if is_left:
                example = f"a bulk {what} is not waited for before the end"
                self.watch.log.report(Defect.UNFINISHED, None, partial(str, example))
        self.mbarriers.report_unfinished()
