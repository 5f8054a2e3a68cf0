"""Scheduling state of each thread: its next basic block; running, waiting at a barrier, or ended."""

from dataclasses import dataclass, field

import numpy as np

from tuner.simulator.ptx.defects import Defect, Fault
from tuner.simulator.ptx.dtypes import Array, Bools, Indices
from tuner.simulator.ptx.geometry import WARP_LANES
from tuner.simulator.ptx.state.resident_blocks import ResidentBlocks

RUNS, AT_BARRIER, AT_MEMORY_BARRIER, AT_CLUSTER_BARRIER, ENDED = range(5)
PLACES = {AT_MEMORY_BARRIER: "an mbarrier", AT_CLUSTER_BARRIER: "the cluster's barrier"}
BARRIERS_LIMIT = 16  # named barriers per block


@dataclass
class Arrival:
    """Arrivals of threads of a block at a named barrier without waiting (bar.arrive): count and clocks."""

    threads: int
    clocks: Array  # join of their vector clocks


@dataclass
class Reduction:
    """A reduction (bar.red) in progress, over the predicates of the threads at a named barrier."""

    operation: str  # "and", "or", "popc"
    target: str  # register
    values: Bools  # of all lanes


@dataclass
class Threads:
    """The scheduling states of the threads of resident blocks: running, waiting at a barrier, or ended.

    Arrays have an entry per lane. PTX ISA, "bar, barrier".
    """

    resident: ResidentBlocks
    basic_block: Indices = field(init=False)  # the thread's next basic block
    status: Array = field(init=False)
    barrier: Indices = field(init=False)  # number of the named barrier where the thread waits
    expected: Indices = field(init=False)  # number of threads that complete the barrier; 0: the whole block
    is_stuck: bool = False  # no thread can run: bulk copies must complete now
    _arrivals: dict[tuple[int, int], Arrival] = field(default_factory=dict)  # (block, barrier)
    _reductions: dict[tuple[int, int], Reduction] = field(default_factory=dict)

    def __post_init__(self) -> None:
        lanes = self.resident.geometry.lanes
        self.basic_block, self.barrier, self.expected = (np.zeros(lanes, np.int64) for _ in range(3))
        self.status = np.where(self.resident.exited, ENDED, RUNS)

    def exit(self, lanes: Bools) -> None:
        """Marks the threads of ``lanes`` as ended."""
        self.status[lanes] = ENDED
        self.resident.exited = self.resident.exited | lanes

    def wait(self, lanes: Bools, barriers: Array, expected: Array) -> None:
        """Makes the threads of ``lanes`` wait at named barriers: bar.sync.

        ``barriers`` and ``expected`` have an entry for each lane that is set in the mask ``lanes``: its
        barrier, and how many threads complete it; 0: all threads of the block that have not ended. Raises
        Fault for a barrier above 15, or a number of threads that is no multiple of 32.
        """
        _check_barriers(barriers, expected)
        self.status[lanes] = AT_BARRIER
        self.barrier[lanes] = barriers
        self.expected[lanes] = expected

    def wait_for_cluster(self, lanes: Bools) -> None:
        """Makes the threads of ``lanes`` wait at the barrier of their cluster: barrier.cluster.wait.

        Raises Fault for a thread that has not arrived since its last wait.
        """
        self.resident.cluster_barriers.begin_wait(np.flatnonzero(lanes))
        self.status[lanes] = AT_CLUSTER_BARRIER

    def reduce(self, lanes: Bools, barrier: int, operation: str, target: str, values: Array) -> None:
        """Adds the predicates ``values`` of ``lanes`` to the reduction at a named barrier (bar.red).

        Does not make the threads wait. ``values`` has an entry for each lane of the resident blocks, also for
        lanes that are not in ``lanes``. ``operation`` is "and", "or" or "popc"; ``target`` is the register
        for the result. Raises Fault where other threads give another operation or register.
        """
        for block in np.unique(self.resident.geometry.block_index[lanes]):
            key = (int(block), barrier)
            found = self._reductions.setdefault(key, Reduction(operation, target, np.zeros(len(lanes), bool)))
            if (found.operation, found.target) != (operation, target):
                raise Fault(Defect.BARRIER, f"found different reductions at barrier {barrier}")
            found.values = np.where(lanes, values, found.values)

    def arrive(self, lanes: Bools, barriers: Array, expected: Array) -> None:
        """Counts the threads of ``lanes`` at a named barrier without making them wait: bar.arrive.

        ``barriers`` and ``expected`` are as for ``wait``. Raises Fault as ``wait`` does.
        """
        _check_barriers(barriers, expected)
        indices = np.flatnonzero(lanes)
        clocks = self.resident.watch.clocks
        blocks = self.resident.geometry.block_index[indices]
        for block, number in np.unique(np.stack((blocks, barriers), axis=1), axis=0):
            some = indices[(blocks == block) & (barriers == number)]
            key = (int(block), int(number))
            known = clocks.known[some].max(axis=0)
            before = self._arrivals.get(key, Arrival(0, known))
            self._arrivals[key] = Arrival(before.threads + len(some), np.maximum(before.clocks, known))
        self.expected[indices] = expected
        clocks.tick(indices)

    def release(self) -> None:
        """Lets the threads run again that wait at complete barriers of blocks (named) and of clusters.

        Orders their memory accesses, and writes the results of bar.red. Raises Fault where more threads are
        at a barrier than it expects.
        """
        at_cluster = self.status == AT_CLUSTER_BARRIER
        if at_cluster.any():
            ended = self.status == ENDED
            self.status[self.resident.cluster_barriers.released(at_cluster, ended)] = RUNS
        waiting = self.status == AT_BARRIER
        if not waiting.any():
            return
        for block in np.unique(self.resident.geometry.block_index[waiting]):
            lanes = self.resident.geometry.lanes_of(int(block))
            here = np.flatnonzero(waiting[lanes]) + lanes.start
            for number in np.unique(self.barrier[here]):
                self._release(int(block), int(number), here[self.barrier[here] == number])

    def _release(self, block: int, number: int, lanes: Indices) -> None:
        arrival = self._arrivals.get((block, number))
        count = len(lanes) + (arrival.threads if arrival else 0)
        of_block = self.status[self.resident.geometry.lanes_of(block)]
        expected = int(self.expected[lanes[0]]) or int((of_block != ENDED).sum())
        if count > expected:
            raise Fault(Defect.BARRIER, f"barrier {number}: found {count} threads, allowed {expected}")
        if count < expected:
            return
        self.resident.watch.clocks.join(lanes, arrival.clocks if arrival else None)
        self._arrivals.pop((block, number), None)
        self._reduced(block, number, lanes)
        self.status[lanes] = RUNS

    def _reduced(self, block: int, number: int, lanes: Indices) -> None:
        found = self._reductions.pop((block, number), None)
        if found is None:
            return
        values = found.values[lanes]
        result = {"and": values.all(), "or": values.any(), "popc": values.sum()}[found.operation]
        dtype = bool if found.operation != "popc" else np.uint32
        self.resident.scatter(found.target, lanes, np.full(len(lanes), result, dtype))

    def wake(self) -> None:
        """Lets the threads that wait at mbarriers run again, so that they test their mbarriers again."""
        self.status[self.status == AT_MEMORY_BARRIER] = RUNS

    def stuck(self) -> str:
        """Returns a text about a deadlock: how many threads wait, and at which barriers some of them do."""
        lanes = np.flatnonzero((self.status != RUNS) & (self.status != ENDED))
        words = []
        for lane in lanes[:: max(len(lanes) // 4, 1)]:
            at = PLACES.get(int(self.status[lane]), f"barrier {self.barrier[lane]}")
            words.append(f"{self.resident.geometry.who(int(lane))} waits at {at}")
        return f"{len(lanes)} threads wait for ever: {'; '.join(words)}"


def _check_barriers(barriers: Array, expected: Array) -> None:
    if (barriers >= BARRIERS_LIMIT).any():
        raise Fault(Defect.BARRIER, f"found barrier {int(barriers.max())}, allowed 0 to {BARRIERS_LIMIT - 1}")
    if (expected % WARP_LANES != 0).any():
        raise Fault(
            Defect.BARRIER, f"found a count of {int(expected.max())} threads, allowed multiples of 32"
        )
