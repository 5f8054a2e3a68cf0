"""Executes decoded basic blocks over the lanes of resident thread blocks until all threads have ended."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tuner.simulator.ptx.decode.program import DecodedBlock, Ending
from tuner.simulator.ptx.defects import Defect, Fault, SimulationError, at
from tuner.simulator.ptx.dtypes import Array, Bools, Indices
from tuner.simulator.ptx.geometry import WARP_LANES
from tuner.simulator.ptx.instruction import PtxKernel
from tuner.simulator.ptx.state.launch_state import uses_async
from tuner.simulator.ptx.state.resident_blocks import ResidentBlocks
from tuner.simulator.ptx.state.thread_states import ENDED, RUNS, Threads

# Basic blocks that resident thread blocks may execute, and the processor's seconds; above: an endless loop.
STEPS_LIMIT = 20_000_000
SECONDS_LIMIT = 300.0  # 'tuner run' ends a program after 600 s
SHORT = 1024  # basic blocks of most launches; only longer ones are looked at for threads that only wait
FAIR_STEPS = 64  # of longer launches: basic blocks after which each warp runs one
LONG_TURN = 1 << 16  # basic blocks after which other work of the device has a turn


@dataclass(frozen=True)
class Pause:
    """Where a launch that has not ended is, so that other work may run before it goes on."""

    where: str  # the threads that run, and the lines that they repeat
    is_stuck: bool  # the threads repeat the same for ever, unless other work writes to memory
    checksum: int  # of the memory that the launch can reach, where it is stuck


@dataclass(frozen=True)
class _State:
    """The threads of an engine at one time. An array of a register is replaced by a write, not changed."""

    basic_block: Indices
    status: Array
    registers: dict[str, Array]

    def equals(self, other: "_State") -> bool:
        threads = ((self.basic_block, other.basic_block), (self.status, other.status))
        if not all(np.array_equal(mine, theirs) for mine, theirs in threads):
            return False
        pairs = ((bits, other.registers.get(name)) for name, bits in self.registers.items())
        same = (bits is found or (found is not None and np.array_equal(bits, found)) for bits, found in pairs)
        return len(self.registers) == len(other.registers) and all(same)


@dataclass
class ExecutionCounts:
    """Counts of what a launch executed; an instruction counts once for each warp that executes it.

    One whose guard predicate is false in the whole warp counts too.
    """

    instructions: int = 0  # warp-level instructions


class Engine:
    """Executes the threads of resident thread blocks, one basic block of some lanes at a time.

    Without a random generator, all lanes at the lowest basic block in reverse post-order run together, so
    that diverged lanes reconverge where their paths meet: the thread frontiers of Diamos et al. (MICRO 2011).
    With a random generator, a random warp (of kernels with wgmma, warpgroup) runs a basic block, and one
    block of each cluster may run ahead of the others.
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
        self._is_ahead = self._blocks_ahead()
        self._is_async = uses_async(kernel)
        self._clock = clock
        self._seconds = 0.0  # of earlier turns
        self._steps = 0  # basic blocks
        self._visited: set[int] = set()  # basic blocks that ran since the state was saved
        self._visited_before: set[int] = set()  # those that ran before, since the last but one
        self._saved: _State | None = None
        self._checksum: int | None = None  # of the memory when the registers were first as saved
        self._compared, self._save_at = 0, 1

    def run(self, instructions: int) -> None:
        """Executes until about ``instructions`` instructions, each counted once for lanes that run together.

        Ends earlier where all threads have ended. Raises SimulationError for a fault of an instruction and a
        deadlock.
        """
        while self._resident.time < instructions and (lanes := self._next()) is not None:
            self._run_block(lanes)

    def turn(self) -> Pause | None:
        """Executes until all threads have ended, or until other work should have a turn; call it again then.

        Returns None at the end, after reporting asynchronous operations never waited for; else where the
        threads are. That is where they can only repeat what they do unless other work writes to memory, and
        after every ``LONG_TURN`` basic blocks. Raises SimulationError for a fault of an instruction, a
        deadlock, and more than ``STEPS_LIMIT`` basic blocks or ``SECONDS_LIMIT`` (an endless loop).
        """
        start_s, self._saved = self._clock(), None
        while True:
            lanes = self._next()
            if lanes is None:
                self._report_unfinished()
                return None
            self._run_block(lanes)
            self._steps += 1
            if self._steps < SHORT or self._steps % FAIR_STEPS:
                continue
            self._run_each_unit()
            if self._is_repeated():
                return Pause(self._where(), True, self._resident.spaces.checksum())
            if self._steps % LONG_TURN == 0:
                self._seconds += self._clock() - start_s
                self._require_within_limits()
                return Pause(self._where(), False, 0)

    def _require_within_limits(self) -> None:
        if self._steps >= STEPS_LIMIT:
            found = f"more than {STEPS_LIMIT} basic blocks"
        elif self._seconds >= SECONDS_LIMIT:
            found = f"more than {SECONDS_LIMIT:g} s"
        else:
            return
        raise self._failed(Defect.ENDLESS, f"found {found}: {self._where()}")

    def _report_unfinished(self) -> None:
        try:
            self._resident.report_unfinished()
        except Fault as fault:  # of a store that was not complete
            raise self._failed(fault.kind, fault.reason) from None

    def _run_each_unit(self) -> None:
        """Runs a basic block of each warp (of kernels with wgmma, warpgroup) that can run.

        Without this, warps that wait in a loop for what another one writes would keep it from running.
        """
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
        """Returns whether all threads and all memory are as at an earlier time of this turn: they will again.

        Brent's cycle detection (1980): the state is saved anew after 1, 2, 4, 8, ... comparisons. Memory is
        compared when the registers have been equal twice, since a sum over it takes long. False for kernels
        with asynchronous operations, whose state has more than registers and memory.
        """
        if self._is_async:
            return False
        saved, self._compared = self._saved, self._compared + 1
        threads = self._threads
        mine = _State(threads.basic_block.copy(), threads.status.copy(), {**self._resident.registers})
        if saved is not None and saved.equals(mine):
            before, self._checksum = self._checksum, self._resident.spaces.checksum()
            return before == self._checksum
        if saved is None or self._compared >= self._save_at:
            self._compared, self._save_at = 0, 1 if saved is None else 2 * self._save_at
            self._saved, self._checksum = mine, None
            self._visited, self._visited_before = set(), self._visited
        return False

    def _where(self) -> str:
        """Returns which threads run, and the lines of the basic blocks that they have run last."""
        lanes = np.flatnonzero(self._threads.status == RUNS)
        if not len(lanes):
            return "all threads wait"
        more = f" and {len(lanes) - 1} more" if len(lanes) > 1 else ""
        visited = self._visited or self._visited_before  # none: the state was saved just now
        ran = [one for number in visited for one in self._program[number].instructions]
        lines = [one.line for one in ran]
        places = [tuple(map(int, one.place.split(":"))) for one in ran if one.place]
        source = " (at line {}:{})".format(*min(places)) if places else ""
        repeat = "repeats" if len(lanes) == 1 else "repeat"
        first, last = min(lines), max(lines)
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
        found: Bools = runs & (threads.basic_block == threads.basic_block[runs].min())
        return found

    def _blocks_ahead(self) -> Bools:
        """Returns the mask of lanes that a random schedule prefers: one random block per cluster, or none."""
        geometry = self._resident.geometry
        count = geometry.cluster_blocks
        if self._rng is None or count == 1:
            return np.zeros(geometry.lanes, bool)
        found: Bools = geometry.block_index % count == self._rng.integers(count + 1)
        return found

    def _run_block(self, lanes: Bools) -> None:
        resident, threads = self._resident, self._threads
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
