"""Bulk copies in flight (cp.async.bulk, TMA) between global and shared memory.

Bulk loads complete at an mbarrier, bulk stores in bulk async-groups. The destination of a load is NaN from
its issue until a thread waits at the mbarrier. A store reads its source at issue; the source is compared
again when a thread waits for the store, to detect changes in between. A store writes when a thread waits for
it without ``.read`` (which only releases the source), or, after a wait with ``.read``, when the blocks end.
PTX ISA, "Tensors", "Async-group mechanism", "Completion Mechanisms for Asynchronous Copy Operations".
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from tuner.gpu.ptxsim.memory.access_log import Watch
from tuner.gpu.ptxsim.memory.shared_memory import POISON, MBarrier, MBarriers, SharedMemory
from tuner.gpu.ptxsim.ptx.defects import Defect, Fault
from tuner.gpu.ptxsim.ptx.dtypes import Array, Indices


@dataclass
class BulkLoad:
    """A bulk copy to shared memory in flight: its bytes are written when a thread waits at its mbarrier."""

    offsets: Indices  # of each byte, in the shared memory of all resident blocks
    content: Array
    clock: int  # time of the write, in the mbarrier's component of the vector clocks


@dataclass
class BulkStore:
    """A bulk copy from shared memory in flight: the bytes read, and the function that writes them."""

    offsets: Indices
    content: Array
    clock: int  # time of the read, in the component of the block's bulk stores
    write: Callable[[Array], None]
    is_read: bool = False  # a thread waited for the read: the source may be overwritten


@dataclass
class BulkCopies:
    """The bulk copies (TMA) of resident blocks that are in flight."""

    watch: Watch
    shared: SharedMemory
    mbarriers: MBarriers
    store_column: int  # first column of the vector clocks for reads by stores, one per block of a cluster
    rng: np.random.Generator | None  # delays loads at random; None: no delays
    fenced: Array = field(init=False)  # per lane: clock of its last proxy fence
    _loads: dict[tuple[int, int], list[BulkLoad]] = field(default_factory=dict)  # (block, mbarrier address)
    _open_stores: dict[int, list[BulkStore]] = field(default_factory=dict)  # by lane
    _store_groups: dict[int, list[list[BulkStore]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.fenced = np.zeros(self.watch.geometry.lanes, np.int32)

    @property
    def has_loads(self) -> bool:
        return bool(self._loads)

    def fence(self, lanes: Indices) -> None:
        """Makes the lanes' writes so far visible to the async proxy (PTX ISA): bulk copies and wgmma."""
        self.fenced[lanes] = self.watch.clocks.own(lanes)
        self.watch.clocks.tick(lanes)

    def multicast(self, lane: int, addresses: Indices, content: Array, mbarrier: int, mask: int) -> None:
        """Begins a bulk load of ``content`` to the blocks in ``mask`` (a bit per rank) of the lane's cluster.

        ``addresses`` has one shared address per byte; ``mbarrier`` is a shared address; both are the same in
        every block. Raises Fault for a mask that is empty or has bits above the cluster's ranks.
        """
        count = self.watch.geometry.cluster_blocks
        if not 0 < mask < 1 << count:
            raise Fault(Defect.ILLEGAL, f"found mask {mask:#x}, allowed ranks of a cluster of {count} blocks")
        for rank in range(count):
            if mask >> rank & 1:
                self.load(lane, addresses, content, mbarrier, rank)

    def load(
        self, lane: int, addresses: Indices, content: Array, mbarrier: int, rank: int | None = None
    ) -> None:
        """Begins a bulk load of ``content`` to shared ``addresses``, one per byte, NaN until a wait.

        The destination is the lane's block, or the one with ``rank``; ``mbarrier`` lies in that block. Raises
        Fault where there is no mbarrier, or for addresses out of bounds or over an mbarrier.
        """
        block = int(self.watch.geometry.block_index[lane])
        if rank is not None:
            block = int(self.watch.geometry.first_of_cluster(np.array([block]))[0]) + rank
        barrier = self.mbarriers.of_block(lane, block, mbarrier)
        whole = self._in_memory(lane, addresses, block)
        for address in self.mbarriers.addresses_of(block):
            if (addresses >> 3 == address >> 3).any():
                raise Fault(Defect.OUT_OF_BOUNDS, f"found a bulk copy over the mbarrier at {address}")
        cells = np.unique(whole // self.shared.races.cell_bytes)
        clock, found = self.shared.races.async_write(lane, cells, barrier.column)
        self.shared.report_agent(found, lane)
        self.shared.bytes[whole] = POISON
        self._loads.setdefault((block, mbarrier), []).append(BulkLoad(whole, content, clock))
        self.mbarriers.has_progress = True

    def land(self, block: int, mbarrier: int, barrier: MBarrier, must: bool) -> None:
        """Completes the bulk loads at an mbarrier; unless ``must``, a random schedule may delay them.

        ``mbarrier``: shared address; ``barrier``: its state, which the bytes are delivered to.
        """
        if (block, mbarrier) not in self._loads:
            return
        if not must and self.rng is not None and self.rng.random() < 0.5:
            return
        for load in self._loads.pop((block, mbarrier)):
            self.shared.bytes[load.offsets] = load.content
            self.mbarriers.deliver(barrier, len(load.content), load.clock)

    def store(self, lane: int, addresses: Indices, write: Callable[[Array], None]) -> None:
        """Begins a bulk store: reads bytes at shared addresses of the lane's block.

        ``write`` is called with the bytes when the lane waits for the store, or in ``end`` where it waited
        only for the read. Raises Fault for addresses out of bounds.
        """
        block = int(self.watch.geometry.block_index[lane])
        races = self.shared.races
        whole = self._in_memory(lane, addresses, block)
        cells = np.unique(whole // races.cell_bytes)
        clock, found = races.async_read(np.array([lane]), cells, self._column(lane), self.fenced)
        self.shared.report_agent(found, lane)
        content = self.shared.bytes[whole].copy()
        self._open_stores.setdefault(lane, []).append(BulkStore(whole, content, clock, write))

    def commit(self, lanes: Indices) -> None:
        """Closes the open bulk async-group of each lane: cp.async.bulk.commit_group."""
        for lane in lanes.tolist():
            self._store_groups.setdefault(lane, []).append(self._open_stores.pop(lane, []))

    def wait(self, lanes: Indices, newest: int, *, is_for_reads: bool) -> None:
        """Completes the lanes' bulk stores, but those in each lane's ``newest`` latest bulk async-groups.

        With ``is_for_reads`` (wait_group.read) only the reads of the sources are complete. Reports, as a
        hazard, a source that changed in flight.
        """
        for lane in lanes.tolist():
            groups = self._store_groups.get(lane, [])
            count = max(len(groups) - newest, 0)
            for store in itertools.chain(*groups[:count]):
                if not store.is_read:
                    store.is_read = True
                    if (self.shared.bytes[store.offsets] != store.content).any():
                        example = f"the source of a bulk store of {self.watch.geometry.who(lane)} changed"
                        instruction = self.watch.instruction
                        self.watch.log.report(Defect.IN_FLIGHT, instruction, partial(str, example))
                    self.watch.clocks.learn_agent(np.array([lane]), self._column(lane), store.clock)
                if not is_for_reads:
                    store.write(store.content)
            if not is_for_reads:
                del groups[:count]

    def _column(self, lane: int) -> int:
        geometry = self.watch.geometry
        return self.store_column + int(geometry.block_index[lane]) % geometry.cluster_blocks

    def _in_memory(self, lane: int, addresses: Indices, block: int) -> Indices:
        if addresses.min() < 0 or addresses.max() >= self.shared.limit_bytes:
            reason = f"found a bulk copy at shared bytes {addresses.min()} to {addresses.max()}"
            raise self.watch.out_of_bounds(lane, f"{reason}, allowed up to {self.shared.limit_bytes}")
        return addresses + block * self.shared.stride_bytes

    def end(self) -> None:
        """Writes stores whose read was waited for; reports other copies, and mbarriers that miss bytes."""
        left = [store for groups in self._store_groups.values() for store in itertools.chain(*groups)]
        for store in left:
            if store.is_read:
                store.write(store.content)
        stores = any(self._open_stores.values()) or not all(store.is_read for store in left)
        for is_left, what in ((self.has_loads, "load"), (stores, "store")):
            if is_left:
                example = f"a bulk {what} is not waited for before the end"
                self.watch.log.report(Defect.UNFINISHED, None, partial(str, example))
        self.mbarriers.report_unfinished()
