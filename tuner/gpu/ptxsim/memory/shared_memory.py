"""The shared memory of resident blocks, with its mbarriers, and access to other blocks of a cluster.

``mapa`` puts a block's rank into the upper bits of a shared address; an address without a rank is in the
thread's own block: PTX ISA, "shared::cluster" and "mapa". The phases, arrivals and tx-counts of mbarriers:
PTX ISA, "mbarrier".
"""

from dataclasses import dataclass, field
from functools import partial

import numpy as np

from tuner.gpu.ptxsim.memory.access_log import Watch
from tuner.gpu.ptxsim.memory.hazards import SilentStores, Unordered
from tuner.gpu.ptxsim.memory.races import SharedRaces
from tuner.gpu.ptxsim.ptx.defects import Defect, Fault
from tuner.gpu.ptxsim.ptx.dtypes import UNSIGNED, Array, Bools, Indices

RANK_BIT = 26  # above every shared address and every generic address truncated to 32 bits
RANKS_LIMIT = 16  # blocks of a cluster; CUDA C programming guide, non-portable cluster size
MBARRIERS_LIMIT = 32  # per block; a limit of this simulator
OBJECT_BYTES = 8
POISON = 0xFF  # floats made of this byte are NaN
STRIDE_BYTES = 1024  # each block begins at a multiple, as on the device


@dataclass
class ClusterMemory:
    """Shared memory of a cluster's blocks: resolves addresses, and records accesses to other blocks."""

    watch: Watch
    _touched: dict[tuple[int, int], int] = field(default_factory=dict)  # (block, lane) -> clock

    def located(self, lanes: Indices, addresses: Indices) -> tuple[Indices, Indices]:
        """Returns (indices of blocks, addresses inside these blocks) for the lanes' shared addresses.

        Records accesses to other blocks. Raises Fault for a rank that the cluster does not have, and for any
        rank in an instruction that takes only addresses of the block's own memory.
        """
        geometry = self.watch.geometry
        own = geometry.block_index[lanes]
        ranks = (addresses >> RANK_BIT) - 1
        is_away = (ranks >= 0) & (ranks < RANKS_LIMIT)
        if not is_away.any():
            return own, addresses
        worst = int(is_away.argmax())
        if ranks[is_away].max() >= geometry.cluster_blocks:
            reason = f"found rank {ranks[is_away].max()} of a cluster of {geometry.cluster_blocks} blocks"
            raise self.watch.out_of_bounds(int(lanes[worst]), reason)
        opcode = self.watch.instruction.opcode
        if ".shared" in opcode and "shared::cluster" not in opcode:
            reason = "found an address of the cluster, allowed those of the block's own shared memory"
            raise self.watch.out_of_bounds(int(lanes[worst]), reason)
        blocks = np.where(is_away, geometry.first_of_cluster(own) + ranks, own)
        others = lanes[blocks != own]
        clocks = self.watch.clocks.own(others).tolist()
        keys = zip(blocks[blocks != own].tolist(), others.tolist(), strict=True)
        self._touched.update(zip(keys, clocks, strict=True))
        return blocks, np.where(is_away, addresses - (ranks + 1 << RANK_BIT), addresses)

    def report_ended(self) -> None:
        """Reports blocks that may end before another block's access to their memory."""
        geometry = self.watch.geometry
        clocks = self.watch.clocks
        for (block, lane), clock in self._touched.items():
            known = clocks.known[geometry.lanes_of(block), geometry.member[lane]]
            if known.max() < clock:
                owner = geometry.who(geometry.lanes_of(block).start)
                who = geometry.who(lane)
                example = f"{who}: the block of {owner} does not wait for it before it ends"
                self.watch.log.report(Defect.ENDED_BLOCK, None, partial(str, example))


@dataclass
class MBarrier:
    """An mbarrier in its current phase: the arrivals and the bytes (tx-count) that are missing."""

    expected: int  # arrivals per phase
    pending: int  # arrivals missing in the current phase
    column: int  # component of the vector clocks for the bulk copies that complete at this mbarrier
    made_by: tuple[int, int]  # epoch of mbarrier.init: (thread, clock)
    clocks: Array  # join of the vector clocks of the arrived threads
    phase_clocks: Array  # the same join for the last completed phase
    phase: int = 0
    pending_bytes: int = 0


@dataclass
class MBarriers:
    """The mbarriers in shared memory of resident blocks."""

    watch: Watch
    cluster: ClusterMemory
    has_progress: bool = False  # an arrival or a completed phase that waiting threads have not tested yet
    _barriers: dict[tuple[int, int], MBarrier] = field(default_factory=dict)

    def init(self, lanes: Indices, addresses: Indices, counts: Indices) -> None:
        """Initialises an mbarrier per lane, which expects ``counts`` arrivals per phase.

        Raises Fault for a misaligned address, and for more than MBARRIERS_LIMIT in a block.
        """
        self.watch.require_aligned(lanes, addresses, OBJECT_BYTES)
        clocks = self.watch.clocks
        for lane, address, count in zip(lanes.tolist(), addresses.tolist(), counts.tolist(), strict=True):
            key = (int(self.watch.geometry.block_index[lane]), address)
            known = clocks.known[lane]
            thread = int(self.watch.geometry.member[lane])
            column = self._column(key)
            creation = (thread, int(known[thread]))
            self._barriers[key] = MBarrier(count, count, column, creation, known.copy(), known.copy())

    def _column(self, key: tuple[int, int]) -> int:
        if key in self._barriers:
            return self._barriers[key].column
        used = sum(block == key[0] for block, _ in self._barriers)
        if used >= MBARRIERS_LIMIT:
            raise Fault(
                Defect.BARRIER, f"found more than {MBARRIERS_LIMIT} mbarriers, which is not simulated"
            )
        geometry = self.watch.geometry
        return geometry.cluster_lanes + key[0] % geometry.cluster_blocks * MBARRIERS_LIMIT + used

    def at(self, lane: int, address: int) -> MBarrier:
        """Returns the mbarrier at a lane's shared address; reports a race with its initialisation.

        Raises Fault if no mbarrier was initialised there.
        """
        blocks, inner = self.cluster.located(np.array([lane]), np.array([address]))
        return self.of_block(lane, int(blocks[0]), int(inner[0]))

    def of_block(self, lane: int, block: int, address: int) -> MBarrier:
        """Returns the mbarrier at an address in the shared memory of the block with index ``block``.

        Reports a race with its initialisation. Raises Fault if no mbarrier was initialised there.
        """
        barrier = self._barriers.get((block, address))
        who = self.watch.geometry.who(lane)
        if barrier is None:
            raise Fault(Defect.BARRIER, f"{who}: found no initialised mbarrier at shared address {address}")
        thread, clock = barrier.made_by
        if self.watch.clocks.known[lane, thread] < clock:
            example = f"{who} at shared byte {address}: not ordered after the initialisation of the mbarrier"
            self.watch.log.report(Defect.SHARED_RACE, self.watch.instruction, lambda: example)
        return barrier

    def addresses_of(self, block: int) -> list[int]:
        return [address for own, address in self._barriers if own == block]

    def arrive(self, lanes: Indices, addresses: Indices, counts: Indices, bytes_: Indices) -> Array:
        """Counts arrivals and expected bytes at each lane's mbarrier.

        Returns, per lane, the number of the mbarrier's phase before the arrival. Raises Fault for more
        arrivals in a phase than expected.
        """
        phases = np.zeros(len(lanes), np.uint64)
        for index, lane in enumerate(lanes.tolist()):
            barrier = self.at(lane, int(addresses[index]))
            phases[index] = barrier.phase
            barrier.clocks = np.maximum(barrier.clocks, self.watch.clocks.known[lane])
            barrier.pending -= int(counts[index])
            barrier.pending_bytes += int(bytes_[index])
            if barrier.pending < 0:
                reason = f"found more arrivals in a phase than {barrier.expected}, its count"
                raise Fault(Defect.BARRIER, reason)
            self._complete(barrier)
        self.watch.clocks.tick(lanes)
        self.has_progress = True
        return phases

    def deliver(self, barrier: MBarrier, bytes_: int, clock: int) -> None:
        """Counts the bytes of a completed bulk copy at an mbarrier; ``clock``: time of the copy's writes.

        Raises Fault for more bytes than expected in a phase in which no arrival is missing.
        """
        barrier.pending_bytes -= bytes_
        barrier.clocks[barrier.column] = max(int(barrier.clocks[barrier.column]), clock)
        if barrier.pending == 0 and barrier.pending_bytes < 0:
            reason = f"found {-barrier.pending_bytes} bytes more than expect_tx announced in a phase"
            raise Fault(Defect.BARRIER, reason)
        self._complete(barrier)

    def _complete(self, barrier: MBarrier) -> None:
        if barrier.pending == 0 and barrier.pending_bytes == 0:
            barrier.phase += 1
            barrier.pending = barrier.expected
            barrier.phase_clocks = barrier.clocks.copy()
            self.has_progress = True

    def test(self, lanes: Indices, addresses: Indices, states: Indices, is_parity: bool) -> Bools:
        """Returns, per lane, whether a phase of its mbarrier is complete; if so, orders the lane after it.

        ``states``: the phase, by number or (``is_parity``) by its parity.
        """
        done = np.zeros(len(lanes), bool)
        for index, lane in enumerate(lanes.tolist()):
            barrier = self.at(lane, int(addresses[index]))
            state = int(states[index])
            done[index] = barrier.phase & 1 != state & 1 if is_parity else barrier.phase > state
            if done[index]:
                self.watch.clocks.learn(np.array([lane]), barrier.phase_clocks)
        return done

    def report_unfinished(self) -> None:
        """Reports mbarriers that still miss bytes, or have too many, when the blocks end."""
        for (_, address), barrier in self._barriers.items():
            if barrier.pending_bytes:
                example = f"the mbarrier at shared byte {address} waits for {barrier.pending_bytes} bytes"
                self.watch.log.report(Defect.UNFINISHED, None, partial(str, example))


class SharedMemory:
    """The shared memory of all resident blocks as one array of bytes, ``stride_bytes`` per block."""

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
        """Returns each lane's byte offset in the array of all blocks' shared memory.

        ``align_bytes`` 0: aligned to ``size_bytes``. Raises Fault for a misaligned address, or one out of
        bounds.
        """
        self._watch.require_aligned(lanes, addresses, align_bytes or size_bytes)
        blocks, addresses = self.cluster.located(lanes, addresses)
        is_out = (addresses < 0) | (addresses + size_bytes > self.limit_bytes)
        allowed = f"allowed up to {self.limit_bytes}"
        self._watch.require_inside(
            lanes, is_out, lambda at: f"found {size_bytes} bytes at shared address {addresses[at]}, {allowed}"
        )
        return addresses + blocks * self.stride_bytes

    def load(self, lanes: Indices, addresses: Indices, item_bytes: int, count: int) -> Array:
        """Loads ``count`` unsigned integers of ``item_bytes`` per lane: [lane, element].

        Counts bank conflicts; reports races and uninitialised memory. Raises Fault for an invalid address.
        """
        size = item_bytes * count
        starts = self.starts(lanes, addresses, size)
        self._watch.count_shared(lanes, addresses, size)
        self._report(self.races.read(lanes, self.races.cells(starts, size)), lanes)
        found: Array = self._views[item_bytes][starts[:, None] // item_bytes + np.arange(count)]
        return found

    def load_rows(self, lanes: Indices, addresses: Indices) -> Array:
        starts = self.starts(lanes, addresses, 16)
        self._watch.count_shared(lanes, addresses, 16)
        self._report(self.races.read(lanes, self.races.cells(starts, 16), is_collective=True), lanes)
        found: Array = self._views[2][starts[:, None] // 2 + np.arange(8)]
        return found

    def store(self, lanes: Indices, addresses: Indices, values: Array) -> None:
        """Stores unsigned integers [lane, element] from each lane's address on.

        Counts bank conflicts and reports races. Raises Fault for an invalid address.
        """
        item = values.itemsize
        size = values.itemsize * values.shape[1]
        starts = self.starts(lanes, addresses, size)
        self._watch.count_shared(lanes, addresses, size)
        cells = self.races.cells(starts, size)
        found = self.races.write(lanes, cells)
        before = self._content(cells) if found else None
        self._views[item][starts[:, None] // item + np.arange(values.shape[1])] = values
        if before is not None:
            self._report(found, lanes, SilentStores.of(values, before, self._content(cells)))

    def update_start(
        self, lanes: Indices, addresses: Indices, item_bytes: int, count: int
    ) -> tuple[Array, Indices]:
        """Returns (shared memory as integers, index of each lane's first one) for an atomic to update.

        Reports races. Raises Fault for an invalid address.
        """
        size = item_bytes * count
        starts = self.starts(lanes, addresses, size)
        self._report(self.races.atomic(lanes, self.races.cells(starts, size)), lanes)
        return self._views[item_bytes], starts // item_bytes

    def begin_copy(self, lanes: Indices, addresses: Indices, size_bytes: int) -> Indices:
        """Begins an asynchronous write, whose bytes are NaN until ``finish_copy``.

        Returns each lane's byte offset in the array of all blocks' shared memory. Raises Fault for an invalid
        address.
        """
        starts = self.starts(lanes, addresses, size_bytes)
        self._watch.count_shared(lanes, addresses, size_bytes)
        found = self.races.write(lanes, self.races.cells(starts, size_bytes), is_pending=True)
        self._report(found, lanes)
        self.bytes[starts[:, None] + np.arange(size_bytes)] = POISON
        return starts

    def finish_copy(self, lanes: Indices, starts: Indices, content: Array) -> None:
        self.bytes[starts[:, None] + np.arange(content.shape[1])] = content
        self.races.complete(lanes, self.races.cells(starts, content.shape[1]))

    def report_agent(self, found: list[Unordered], lane: int) -> None:
        """Logs ``found``, unordered accesses of an agent, as hazards; messages name ``lane``.

        An agent is an asynchronous reader or writer, a bulk copy or wgmma, which the lane issued.
        """
        self._report(found, np.array([lane]))

    def _content(self, cells: Indices) -> Array:
        size = self.races.cell_bytes
        found: Array = self.bytes[cells[:, :, None] * size + np.arange(size)]
        return found

    def _report(self, found: list[Unordered], lanes: Indices, silent: SilentStores | None = None) -> None:
        self._watch.report(found, lanes, "shared", self.races.cell_bytes, silent)
