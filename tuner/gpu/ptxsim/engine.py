"""Executes the threads of resident thread blocks: which run next, and when other work may run.

``Engine`` runs basic blocks, each for all lanes that are at it; it yields a ``Pause`` where work of another
stream may run.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tuner.gpu.ptxsim.instructions.decoder import DecodedBlock, Ending
from tuner.gpu.ptxsim.ptx.defects import Defect, Fault, SimulationError, at
from tuner.gpu.ptxsim.ptx.dtypes import Array, Bools, Indices
from tuner.gpu.ptxsim.ptx.geometry import WARP_LANES
from tuner.gpu.ptxsim.ptx.syntax_tree import Instruction, PtxKernel
from tuner.gpu.ptxsim.state.resident_blocks import ENDED, RUNS, ResidentBlocks, Threads, uses_async

# Limits of a batch of thread blocks: basic blocks, and seconds of processor time; beyond is an endless loop.
STEPS_LIMIT = 20_000_000
SECONDS_LIMIT = 300.0  # 'tuner run' ends a program after 600 s
SHORT = 1024  # basic blocks; only launches that execute more are searched for threads that wait in a loop
FAIR_STEPS = 64  # in longer launches, each warp runs a basic block after every 64: none starves
PAUSE_BLOCKS = 1 << 16  # basic blocks after which other work of the device may run


@dataclass(frozen=True)
class Pause:
    """The state of a launch that has not ended, at a time when other work may run."""

    where: str  # the threads that run, and the lines that they repeat
    is_stuck: bool  # the threads repeat the same for ever, unless other work writes to memory
    checksum: int  # of the memory that the launch can reach, if it is stuck; else 0


@dataclass(frozen=True)
class _State:
    """The threads of an engine at one time. A write replaces a register's array, so none is copied here."""

    basic_block: Indices
    status: Array
    registers: dict[str, Array]

    def equals(self, other: "_State") -> bool:
        if not np.array_equal(self.basic_block, other.basic_block):
            return False
        if not np.array_equal(self.status, other.status):
            return False
        pairs = ((bits, other.registers.get(name)) for name, bits in self.registers.items())
        same = (
            bits is theirs or (theirs is not None and np.array_equal(bits, theirs)) for bits, theirs in pairs
        )
        return len(self.registers) == len(other.registers) and all(same)


@dataclass
class ExecutionCounts:
    """How many instructions a launch executed; each counts once per warp, also if its guard is false."""

    instructions: int = 0  # warp-level instructions


class Engine:
    """Executes the threads of resident thread blocks, one basic block of some lanes at a time.

    Without a random generator, all lanes at the lowest basic block in reverse post-order run together: the
    thread frontiers of Diamos et al. (MICRO 2011). With one, a random warp (of kernels with wgmma, warpgroup)
    runs a basic block, and one block of each cluster may run ahead of the others.
    """

    def __init__(
        self,
        kernel: PtxKernel,
        program: tuple[DecodedBlock, ...],
        resident: ResidentBlocks,
        counts: ExecutionCounts,
        rng: np.random.Generator | None,
        unit_lanes: int = WARP_LANES,  # lanes that a random schedule runs together
        clock: Callable[[], float] = time.thread_time,  # seconds of the processor
    ) -> None:
        self._kernel = kernel
        self._program = program
        self._resident = resident
        self._counts = counts
        self._rng = rng
        self._unit = np.arange(resident.geometry.lanes) // unit_lanes
        self._threads = Threads(resident)
        geometry = resident.geometry
        self._is_ahead: Bools = np.zeros(geometry.lanes, bool)  # that a random schedule prefers
        if rng is not None and geometry.cluster_blocks > 1:  # one random block per cluster, or none
            ahead = rng.integers(geometry.cluster_blocks + 1)
            self._is_ahead = geometry.block_index % geometry.cluster_blocks == ahead
        self._is_async = uses_async(kernel)
        self._clock = clock
        self._seconds = 0.0  # of earlier calls
        self._steps = 0  # basic blocks
        self._visited: set[int] = set()  # basic blocks that ran since the state was saved
        self._visited_before: set[int] = set()  # basic blocks that ran between the last two saves
        self._saved: _State | None = None
        self._checksum: int | None = None  # of the memory when the threads first equalled ``_saved``
        self._compared = 0
        self._save_at = 1

    def run(self, instructions: int) -> None:
        """Executes until about ``instructions`` instructions are executed in all, or all threads have ended.

        An instruction that lanes execute together counts once. Raises SimulationError for a fault of an
        instruction, and for a deadlock.
        """
        while self._resident.time < instructions and (lanes := self._next()) is not None:
            self._run_block(lanes)

    def run_to_pause(self) -> Pause | None:
        """Executes until all threads have ended, and returns None, or until other work should run: a Pause.

        It pauses after every PAUSE_BLOCKS basic blocks, and when the threads only repeat themselves until
        other work writes to memory; call it again to go on. Raises SimulationError for a fault of an
        instruction, a deadlock, and an endless loop (STEPS_LIMIT, SECONDS_LIMIT).
        """
        start_s = self._clock()
        self._saved = None
        while True:
            lanes = self._next()
            if lanes is None:
                try:
                    self._resident.report_unfinished()
                except Fault as fault:  # of a store that was not complete
                    raise self._failed(fault.kind, fault.reason) from None
                return None
            self._run_block(lanes)
            self._steps += 1
            if self._steps < SHORT or self._steps % FAIR_STEPS:
                continue
            self._run_each_unit()
            if self._is_repeated():
                return Pause(self._where(), True, self._resident.spaces.checksum())
            if self._steps % PAUSE_BLOCKS == 0:
                self._seconds += self._clock() - start_s
                if self._steps >= STEPS_LIMIT or self._seconds >= SECONDS_LIMIT:
                    is_long = self._steps >= STEPS_LIMIT
                    limit = f"{STEPS_LIMIT} basic blocks" if is_long else f"{SECONDS_LIMIT:g} s"
                    raise self._failed(Defect.ENDLESS, f"found more than {limit}: {self._where()}")
                return Pause(self._where(), False, 0)

    def _run_each_unit(self) -> None:
        """Runs a basic block of each warp (or warpgroup): one that waits in a loop then blocks no other."""
        if self._next() is None:
            return
        blocks = self._threads.basic_block.copy()
        runs = self._threads.status == RUNS
        first = np.full(int(self._unit[-1]) + 1, np.iinfo(np.int64).max)
        np.minimum.at(first, self._unit[runs], blocks[runs])
        runs &= blocks == first[self._unit]
        for number in np.unique(blocks[runs]):
            self._run_block(runs & (blocks == number))

    def _is_repeated(self) -> bool:
        """Returns whether registers and memory equal an earlier state, so that the launch repeats for ever.

        Brent's cycle detection (1980): the state is saved anew after 1, 2, 4, 8, ... comparisons. Memory is
        compared when the registers have been equal twice. False for kernels with asynchronous operations.
        """
        if self._is_async:
            return False
        saved = self._saved
        self._compared = self._compared + 1
        threads = self._threads
        mine = _State(threads.basic_block.copy(), threads.status.copy(), {**self._resident.registers})
        if saved is not None and saved.equals(mine):
            before = self._checksum
            self._checksum = self._resident.spaces.checksum()
            return before == self._checksum
        if saved is None or self._compared >= self._save_at:
            self._compared = 0
            self._save_at = 1 if saved is None else 2 * self._save_at
            self._saved = mine
            self._checksum = None
            self._visited, self._visited_before = set(), self._visited
        return False

    def _where(self) -> str:
        """Returns a text on which threads run, and the lines of the basic blocks that they have run last."""
        lanes = np.flatnonzero(self._threads.status == RUNS)
        if not len(lanes):
            return "all threads wait"
        more = f" and {len(lanes) - 1} more" if len(lanes) > 1 else ""
        visited = self._visited or self._visited_before  # none: the state was saved just now
        ran = list[Instruction]()
        for number in visited:
            ran += self._program[number].instructions
        lines = [instruction.line for instruction in ran]
        locations = [
            tuple(map(int, instruction.place.split(":"))) for instruction in ran if instruction.place
        ]
        source = " (at line {}:{})".format(*min(locations)) if locations else ""
        repeat = "repeats" if len(lanes) == 1 else "repeat"
        first = min(lines)
        last = max(lines)
        loop = f"line {first}" if first == last else f"lines {first} to {last}"
        who = self._resident.geometry.who(int(lanes[0]))
        return f"{who}{more} {repeat} {loop} of the PTX{source}"

    def _next(self) -> Bools | None:
        """Returns the mask of lanes to run next, all at one basic block; None when all threads ended."""
        threads = self._threads
        try:
            threads.release()
        except Fault as fault:
            raise self._failed(fault.kind, fault.reason) from None
        if self._resident.mbarriers.has_progress:
            self._resident.mbarriers.has_progress = False
            threads.wake()
        runs = threads.status == RUNS
        if not runs.any():
            if (threads.status == ENDED).all():
                return None
            if threads.is_stuck or not self._resident.bulk.has_loads:
                raise self._failed(Defect.DEADLOCK, threads.stuck())
            threads.is_stuck = True
            threads.wake()
            runs = threads.status == RUNS
        if self._rng is not None:
            if (runs & self._is_ahead).any():
                runs &= self._is_ahead
            runs &= self._unit == self._rng.choice(np.unique(self._unit[runs]))
        lanes: Bools = runs & (threads.basic_block == threads.basic_block[runs].min())
        return lanes

    def _run_block(self, lanes: Bools) -> None:
        resident = self._resident
        threads = self._threads
        number = int(threads.basic_block[lanes.argmax()])
        self._visited.add(number)
        block = self._program[number]
        resident.set_mask(lanes)
        self._counts.instructions += block.length * int(lanes.reshape(-1, WARP_LANES).any(axis=1).sum())
        for instruction, step in block.steps:
            resident.watch.instruction = instruction
            resident.time += 1
            try:
                step(resident)
            except Fault as fault:
                raise at(instruction, fault) from None
        if block.ending is not None:
            self._end(block.ending, lanes, block.following)
        elif block.following is None:
            threads.exit(lanes)
        else:
            threads.basic_block[lanes] = block.following

    def _end(self, ending: Ending, lanes: Bools, following: int | None) -> None:
        resident = self._resident
        resident.watch.instruction = ending.instruction
        resident.time += 1
        taken = lanes
        guard, is_negated = ending.guard
        if guard is not None:
            holds = guard(resident)
            taken = lanes & (~holds if is_negated else holds)
        after = 0 if following is None else following
        self._threads.basic_block[lanes & ~taken] = after
        if not taken.any():
            return
        try:
            ending.terminator(self._threads, taken, after)
        except Fault as fault:
            raise at(ending.instruction, fault) from None

    def _failed(self, kind: Defect, reason: str) -> SimulationError:
        return SimulationError(kind, 0, f"kernel {self._kernel.name}: {kind.value}: {reason}")
