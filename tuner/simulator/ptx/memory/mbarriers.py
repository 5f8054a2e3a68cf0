"""mbarrier objects in shared memory. PTX ISA, "mbarrier": phases, arrivals and tx-count."""

from dataclasses import dataclass, field
from functools import partial

import numpy as np

from tuner.simulator.ptx.defects import Defect, Fault
from tuner.simulator.ptx.dtypes import Array, Bools, Indices
from tuner.simulator.ptx.memory.cluster_memory import ClusterMemory
from tuner.simulator.ptx.races.access_watch import Watch

MBARRIERS_LIMIT = 32  # per block; a limit of this simulator
OBJECT_BYTES = 8


@dataclass
class MBarrier:
    """An mbarrier with its current phase: the arrivals and bytes (tx-count) that are missing."""

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
        """Initialises an mbarrier per lane at its shared address: mbarrier.init.

        ``counts`` are the arrivals of a phase. Raises Fault for a misaligned address, or for more than 32
        addresses of mbarriers in a block, also of invalidated ones.
        """
        self.watch.require_aligned(lanes, addresses, OBJECT_BYTES)
        clocks = self.watch.clocks
        for lane, address, count in zip(lanes.tolist(), addresses.tolist(), counts.tolist(), strict=True):
            key = (int(self.watch.geometry.block_index[lane]), address)
            known = clocks.known[lane]
            thread = int(self.watch.geometry.member[lane])
            column = self._column(key)
            made = (thread, int(known[thread]))
            self._barriers[key] = MBarrier(count, count, column, made, known.copy(), known.copy())

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
        """Returns the mbarrier at a lane's shared address, which may lie in another block of the cluster.

        Raises Fault where there is no mbarrier; reports a race where the lane is not ordered after its
        initialisation.
        """
        blocks, inner = self.cluster.located(np.array([lane]), np.array([address]))
        return self.of_block(lane, int(blocks[0]), int(inner[0]))

    def of_block(self, lane: int, block: int, address: int) -> MBarrier:
        """Returns the mbarrier at a shared address inside the block with index ``block``, for a lane.

        Raises Fault where there is no mbarrier; reports a race where the lane is not ordered after its
        initialisation.
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
        """Returns the shared addresses of all mbarriers of the block with index ``block``."""
        return [address for own, address in self._barriers if own == block]

    def arrive(self, lanes: Indices, addresses: Indices, counts: Indices, bytes_: Indices) -> Array:
        """Counts arrivals and expected bytes at mbarriers, per lane: mbarrier.arrive and expect_tx.

        Returns per lane the number of the phase in which it arrived. Raises Fault for more arrivals than a
        phase has.
        """
        phases = np.zeros(len(lanes), np.uint64)
        for number, lane in enumerate(lanes.tolist()):
            barrier = self.at(lane, int(addresses[number]))
            phases[number] = barrier.phase
            barrier.clocks = np.maximum(barrier.clocks, self.watch.clocks.known[lane])
            barrier.pending -= int(counts[number])
            barrier.pending_bytes += int(bytes_[number])
            if barrier.pending < 0:
                reason = f"found more arrivals in a phase than {barrier.expected}, its count"
                raise Fault(Defect.BARRIER, reason)
            self._complete(barrier)
        self.watch.clocks.tick(lanes)
        self.has_progress = True
        return phases

    def deliver(self, barrier: MBarrier, bytes_: int, clock: int) -> None:
        """Counts ``bytes_`` bytes of a bulk copy that completed at ``barrier``: complete-tx.

        ``clock`` is the time of the copy's writes, after which waiting threads are ordered. Raises Fault for
        more bytes than were expected in a phase in which no arrival is missing.
        """
        barrier.pending_bytes -= bytes_
        barrier.clocks[barrier.column] = max(int(barrier.clocks[barrier.column]), clock)
        if barrier.pending == 0 and barrier.pending_bytes < 0:
            raise Fault(
                Defect.BARRIER,
                f"found {-barrier.pending_bytes} bytes more than expect_tx announced in a phase",
            )
        self._complete(barrier)

    def _complete(self, barrier: MBarrier) -> None:
        if barrier.pending == 0 and barrier.pending_bytes == 0:
            barrier.phase += 1
            barrier.pending = barrier.expected
            barrier.phase_clocks = barrier.clocks.copy()
            self.has_progress = True

    def test(self, lanes: Indices, addresses: Indices, states: Indices, is_parity: bool) -> Bools:
        """Returns per lane whether its phase is complete; if so, orders the lane after the phase's arrivals.

        ``states`` holds numbers of phases as ``arrive`` returns them, or with ``is_parity`` their parities.
        """
        done = np.zeros(len(lanes), bool)
        for number, lane in enumerate(lanes.tolist()):
            barrier = self.at(lane, int(addresses[number]))
            state = int(states[number])
            done[number] = barrier.phase & 1 != state & 1 if is_parity else barrier.phase > state
            if done[number]:
                self.watch.clocks.learn(np.array([lane]), barrier.phase_clocks)
        return done

    def report_unfinished(self) -> None:
        """Reports, as hazards, mbarriers that at the end of the blocks have bytes missing, or too many."""
        for (_, address), barrier in self._barriers.items():
            if barrier.pending_bytes:
                example = f"the mbarrier at shared byte {address} waits for {barrier.pending_bytes} bytes"
                self.watch.log.report(Defect.UNFINISHED, None, partial(str, example))
