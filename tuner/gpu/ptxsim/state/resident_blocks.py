"""The state of thread blocks that execute together: registers, thread scheduling, barriers, the launch.

``ResidentBlocks`` has the registers and memories of all their lanes, ``Threads`` which lanes run, wait or
have ended, ``LaunchState`` what all blocks of a launch share.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from tuner.gpu.ptxsim.memory.access_log import AccessSample, ConflictCounter, Watch
from tuner.gpu.ptxsim.memory.async_copies import Copies
from tuner.gpu.ptxsim.memory.bulk_copies import BulkCopies
from tuner.gpu.ptxsim.memory.global_memory import Spaces
from tuner.gpu.ptxsim.memory.hazards import HazardLog
from tuner.gpu.ptxsim.memory.shared_memory import MBARRIERS_LIMIT, MBarriers, SharedMemory
from tuner.gpu.ptxsim.memory.tensor_maps import PlacedMap
from tuner.gpu.ptxsim.memory.vector_clocks import Clocks
from tuner.gpu.ptxsim.ptx.defects import Defect, Fault
from tuner.gpu.ptxsim.ptx.dtypes import UNSIGNED, Array, Bools, Indices
from tuner.gpu.ptxsim.ptx.geometry import WARP_LANES, Geometry
from tuner.gpu.ptxsim.ptx.layout import Layout
from tuner.gpu.ptxsim.ptx.syntax_tree import Instruction, PtxKernel
from tuner.gpu.ptxsim.state.arguments import Placement
from tuner.gpu.ptxsim.state.fragments import WARPGROUP_LANES, Warpgroups

# Content of a register before its first write: NaN in every floating-point type.
UNWRITTEN = 0xFFFF_FFFF_FFFF_FFFF
IDLE = Instruction("begin", (), None, 0, "begin")
ASYNCHRONOUS = ("mbarrier.", "cp.async.bulk.", "wgmma.")
BARRIERS_LIMIT = 16  # named barriers per block


@dataclass
class ClusterBarriers:
    """The hardware barriers of resident clusters (barrier.cluster), with arrivals and waits per lane."""

    watch: Watch
    _arrivals: Indices = field(init=False)  # per lane: number of its arrivals
    _waits: Indices = field(init=False)  # per lane: number of its completed waits
    _clocks: dict[tuple[int, int], Array] = field(default_factory=dict)  # (cluster, phase) -> joined clocks

    def __post_init__(self) -> None:
        self._arrivals, self._waits = (np.zeros(self.watch.geometry.lanes, np.int64) for _ in range(2))

    def arrive(self, lanes: Indices, *, releases: bool) -> None:
        """Counts an arrival of each of ``lanes``; ``releases``: it releases the lanes' earlier accesses.

        Raises Fault for a second arrival without a wait in between.
        """
        geometry = self.watch.geometry
        clocks = self.watch.clocks
        is_twice = self._arrivals[lanes] > self._waits[lanes]
        if is_twice.any():
            who = geometry.who(int(lanes[is_twice.argmax()]))
            raise Fault(Defect.BARRIER, f"{who}: found a second arrival, allowed one before each wait")
        if releases:
            for cluster in np.unique(geometry.cluster_index[lanes]).tolist():
                some = lanes[geometry.cluster_index[lanes] == cluster]
                # the phase of an arrival: how many the thread made before
                for phase in np.unique(self._arrivals[some]).tolist():
                    known = clocks.known[some[self._arrivals[some] == phase]].max(axis=0)
                    before = self._clocks.get((cluster, phase), known)
                    self._clocks[cluster, phase] = np.maximum(before, known)
            clocks.tick(lanes)
        self._arrivals[lanes] += 1

    def begin_wait(self, lanes: Indices) -> None:
        is_early = self._arrivals[lanes] == self._waits[lanes]
        if is_early.any():
            who = self.watch.geometry.who(int(lanes[is_early.argmax()]))
            raise Fault(Defect.BARRIER, f"{who}: found a wait, allowed one after each arrival")

    def released(self, waiting: Bools, ended: Bools) -> Indices:
        """Returns the waiting lanes whose phase is complete, and orders them after the phase's arrivals."""
        geometry = self.watch.geometry
        lanes_done = [np.zeros(0, np.int64)]
        for cluster in np.unique(geometry.cluster_index[waiting]).tolist():
            lanes = geometry.lanes_of_cluster(cluster)
            complete = self._arrivals[lanes][~ended[lanes]].min()
            here = np.flatnonzero(waiting[lanes]) + lanes.start
            done = here[self._arrivals[here] <= complete]
            for lane in done.tolist():
                clocks = self._clocks.get((cluster, int(self._waits[lane])))
                if clocks is not None:
                    self.watch.clocks.learn(np.array([lane]), clocks)
            self._waits[done] += 1
            lanes_done.append(done)
        return np.concatenate(lanes_done)


@dataclass
class ResidentBlocks:
    """The state of thread blocks that are simulated together: registers, memories and the active lanes."""

    geometry: Geometry
    watch: Watch
    spaces: Spaces
    copies: Copies
    mbarriers: MBarriers
    cluster_barriers: ClusterBarriers
    bulk: BulkCopies
    warpgroups: Warpgroups
    tensor_maps: dict[int, PlacedMap]  # by generic address
    special: dict[str, Array]
    width_of: Callable[[str], "np.dtype[np.generic] | None"]  # register -> numpy type of its bits
    exited: Bools  # lanes whose thread has ended, and padding lanes
    printed: list[str]  # output of vprintf, of all thread blocks of the launch
    mask: Bools = field(init=False)
    is_full: bool = True  # all lanes are active
    registers: dict[str, Array] = field(default_factory=dict)
    written_at: dict[str, int] = field(default_factory=dict)  # register -> time of its last write
    time: int = 0  # instructions executed so far

    def __post_init__(self) -> None:
        self.set_mask(np.ones(self.geometry.lanes, bool))

    def set_mask(self, mask: Bools) -> None:
        self.mask = mask
        self.is_full = bool(mask.all())

    def active(self) -> Indices:
        return np.flatnonzero(self.mask)

    def read(self, name: str) -> Array:
        """Returns a register's bits in all lanes.

        All ones (a predicate: False) where it was never written.
        """
        bits = self.registers.get(name)
        if bits is not None:
            return bits
        dtype = self.width_of(name)
        assert dtype is not None, "operands are declared: checked when they are decoded"
        if dtype == np.bool_:
            return np.zeros(self.mask.shape, bool)
        return np.full(self.mask.shape, UNWRITTEN & ((1 << 8 * dtype.itemsize) - 1), UNSIGNED[dtype.itemsize])

    def write(self, name: str, bits: Array) -> None:
        if name == "_":
            return
        self.written_at[name] = self.time
        if self.is_full and bits.shape == self.mask.shape:
            self.registers[name] = bits
        else:
            self.registers[name] = np.where(self.mask, bits, self.read(name))

    def scatter(self, name: str, lanes: Indices, bits: Array) -> None:
        if name == "_":
            return
        self.written_at[name] = self.time
        self.put(name, lanes, bits)

    def put(self, name: str, lanes: Indices, bits: Array) -> None:
        """Writes a register in ``lanes``; does not count as a write by the kernel (``written_at``)."""
        merged = np.array(self.read(name))
        merged[lanes] = bits
        self.registers[name] = merged

    def report_unfinished(self) -> None:
        """Ends asynchronous operations after all threads: writes bulk stores whose read was waited for.

        Reports operations that no thread waited for, and blocks that ended too early.
        """
        self.copies.report_unfinished()
        self.bulk.end()
        self.spaces.shared.cluster.report_ended()
        self.warpgroups.report_unfinished(self.watch)

    def full(self, values: Array) -> Array:
        return np.broadcast_to(values, self.mask.shape)

    def chosen(self, values: Array) -> Array:
        """Returns the values of the active lanes only."""
        full = self.full(values)
        if self.is_full:
            return full
        return full[self.mask]

    def require_whole_warps(self, lanes: Bools) -> None:
        """Raises Fault if ``lanes``, at an .aligned barrier, lack a lane of their warps that still runs."""
        here = lanes.reshape(-1, WARP_LANES)
        rest = ~here & ~self.exited.reshape(-1, WARP_LANES)
        is_split = here.any(axis=1) & rest.any(axis=1)
        if is_split.any():
            warp = int(is_split.argmax())
            lane = warp * WARP_LANES + int(rest[warp].argmax())
            reason = f"{self.geometry.who(lane)} is not here, but others of its warp are"
            raise Fault(Defect.DIVERGENCE, reason)

    def whole_warps(self) -> Indices:
        """Returns the indices of the active warps. Raises Fault for a warp of which only a part is active."""
        lanes = self.mask.reshape(-1, WARP_LANES)
        some = lanes.any(axis=1)
        is_split = some & ~lanes.all(axis=1)
        if is_split.any():
            warp = int(is_split.argmax())
            count = int(lanes[warp].sum())
            who = self.geometry.who(warp * WARP_LANES + int(lanes[warp].argmax()))
            raise Fault(Defect.DIVERGENCE, f"the warp of {who} has {count} of 32 threads here, allowed all")
        return np.flatnonzero(some)

    def lanes_of_warps(self, warps: Indices) -> Indices:
        return (warps[:, None] * WARP_LANES + np.arange(WARP_LANES)).ravel()


@dataclass
class LaunchState:
    """The state that all thread blocks of a launch share: arguments in memory, and logs."""

    layout: Layout
    placement: Placement
    shared_bytes: int
    log: HazardLog = field(default_factory=HazardLog)
    conflicts: ConflictCounter = field(default_factory=ConflictCounter)
    printed: list[str] = field(default_factory=list)
    sample: AccessSample | None = None  # records accesses; None: not recorded

    def resident_blocks(self, geometry: Geometry, rng: np.random.Generator | None) -> ResidentBlocks:
        """Returns the state of the thread blocks of ``geometry`` before their first instruction.

        ``rng`` delays bulk loads at random, to find missing waits; None: no delays. Columns of a vector
        clock: threads of the cluster; then, if the kernel has asynchronous operations, its mbarriers, the
        shared-memory reads of wgmma per warpgroup, and those of bulk stores per block.
        """
        is_async = uses_async(self.layout.kernel)
        warpgroups = -(-geometry.block_lanes // WARPGROUP_LANES)
        blocks = geometry.cluster_blocks
        readers = (warpgroups + 1) * blocks if is_async else 0
        clocks = Clocks(geometry, MBARRIERS_LIMIT * blocks + readers if is_async else 0)
        watch = Watch(clocks, self.log, self.conflicts, IDLE, self.sample)
        shared = SharedMemory(watch, self.shared_bytes, self.layout.cell_bytes, readers)
        global_ = self.placement.global_
        mbarriers = MBarriers(watch, shared.cluster)
        return ResidentBlocks(
            geometry=geometry,
            watch=watch,
            spaces=Spaces(watch, global_, shared, self.layout.local_bytes, self.placement.parameters),
            copies=Copies(watch, global_, shared),
            mbarriers=mbarriers,
            cluster_barriers=ClusterBarriers(watch),
            bulk=BulkCopies(watch, shared, mbarriers, clocks.columns - blocks, rng),
            warpgroups=Warpgroups(watch, shared, clocks.columns - readers),
            tensor_maps=self.placement.tensor_maps,
            special=geometry.special_registers(),
            width_of=self.layout.width,
            exited=geometry.thread >= geometry.threads,
            printed=self.printed,
        )


def uses_async(kernel: PtxKernel) -> bool:
    """Returns whether a kernel contains mbarriers, bulk copies or wgmma; cp.async does not count."""
    return _has(kernel, ASYNCHRONOUS)


def random_unit_lanes(kernel: PtxKernel) -> int:
    """Returns how many lanes a random schedule runs together: 128 for a kernel with wgmma, else 32."""
    if _has(kernel, ("wgmma.",)):
        return WARPGROUP_LANES
    return WARP_LANES


def _has(kernel: PtxKernel, opcodes: tuple[str, ...]) -> bool:
    return any(isinstance(item, Instruction) and item.opcode.startswith(opcodes) for item in kernel.body)


RUNS, AT_BARRIER, AT_MEMORY_BARRIER, AT_CLUSTER_BARRIER, ENDED = range(5)
PLACES = {AT_MEMORY_BARRIER: "an mbarrier", AT_CLUSTER_BARRIER: "the cluster's barrier"}


@dataclass
class Arrival:
    """Threads that arrived at a named barrier without waiting (bar.arrive), with their joined clocks."""

    threads: int
    clocks: Array  # join of their vector clocks


@dataclass
class Reduction:
    """A reduction (bar.red) in progress at a named barrier, over predicates of the threads there."""

    operation: str  # "and", "or", "popc"
    target: str  # register
    values: Bools  # of all lanes


@dataclass
class Threads:
    """The state of each lane's thread, for scheduling: running, waiting or ended. PTX ISA, "bar, barrier"."""

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
        self.status[lanes] = ENDED
        self.resident.exited = self.resident.exited | lanes

    def wait(self, lanes: Bools, barriers: Array, expected: Array) -> None:
        """Makes threads wait at named barriers for ``expected`` threads.

        0: all threads of the block that have not ended. Raises Fault for an invalid barrier or number of
        threads.
        """
        _check_barriers(barriers, expected)
        self.status[lanes] = AT_BARRIER
        self.barrier[lanes] = barriers
        self.expected[lanes] = expected

    def wait_for_cluster(self, lanes: Bools) -> None:
        self.resident.cluster_barriers.begin_wait(np.flatnonzero(lanes))
        self.status[lanes] = AT_CLUSTER_BARRIER

    def reduce(self, lanes: Bools, barrier: int, operation: str, target: str, values: Array) -> None:
        """Adds predicates of ``lanes`` to the reduction at a named barrier (bar.red), without a wait.

        ``values``: of all resident lanes; ``operation``: "and", "or" or "popc"; ``target``: register of the
        result. Raises Fault if threads disagree on operation or target.
        """
        for block in np.unique(self.resident.geometry.block_index[lanes]):
            key = (int(block), barrier)
            new = Reduction(operation, target, np.zeros(len(lanes), bool))
            reduction = self._reductions.setdefault(key, new)
            if (reduction.operation, reduction.target) != (operation, target):
                raise Fault(Defect.BARRIER, f"found different reductions at barrier {barrier}")
            reduction.values = np.where(lanes, values, reduction.values)

    def arrive(self, lanes: Bools, barriers: Array, expected: Array) -> None:
        """Counts threads at named barriers without making them wait: bar.arrive.

        ``expected`` is only checked; how many complete the barrier comes from ``wait``. Raises Fault for an
        invalid barrier or number.
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
        clocks.tick(indices)

    def release(self) -> None:
        """Lets threads at complete barriers run again: orders their accesses, writes results of bar.red.

        Raises Fault for more threads at a barrier than expected.
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
        arrival = self._arrivals.get((block, number))  # of threads that do not wait: bar.arrive
        count = len(lanes) + (arrival.threads if arrival else 0)
        of_block = self.status[self.resident.geometry.lanes_of(block)]
        # 0: the instruction has no count, all threads of the block that have not ended are expected
        expected = int(self.expected[lanes[0]]) or int((of_block != ENDED).sum())
        if count > expected:
            raise Fault(Defect.BARRIER, f"barrier {number}: found {count} threads, allowed {expected}")
        if count < expected:
            return
        self.resident.watch.clocks.join(lanes, arrival.clocks if arrival else None)
        self._arrivals.pop((block, number), None)
        reduction = self._reductions.pop((block, number), None)
        if reduction is not None:
            values = reduction.values[lanes]
            result = {"and": values.all(), "or": values.any(), "popc": values.sum()}[reduction.operation]
            dtype = np.uint32 if reduction.operation == "popc" else bool
            self.resident.scatter(reduction.target, lanes, np.full(len(lanes), result, dtype))
        self.status[lanes] = RUNS

    def wake(self) -> None:
        self.status[self.status == AT_MEMORY_BARRIER] = RUNS

    def stuck(self) -> str:
        """Returns a text on a deadlock: how many threads wait, and at which barriers some of them do."""
        lanes = np.flatnonzero((self.status != RUNS) & (self.status != ENDED))
        waits = []
        for lane in lanes[:: max(len(lanes) // 4, 1)]:
            at = PLACES.get(int(self.status[lane]), f"barrier {self.barrier[lane]}")
            waits.append(f"{self.resident.geometry.who(int(lane))} waits at {at}")
        return f"{len(lanes)} threads wait for ever: {'; '.join(waits)}"


def _check_barriers(barriers: Array, expected: Array) -> None:
    if (barriers >= BARRIERS_LIMIT).any():
        raise Fault(Defect.BARRIER, f"found barrier {int(barriers.max())}, allowed 0 to {BARRIERS_LIMIT - 1}")
    if (expected % WARP_LANES != 0).any():
        raise Fault(
            Defect.BARRIER, f"found a count of {int(expected.max())} threads, allowed multiples of 32"
        )
