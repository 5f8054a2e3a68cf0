"""Executes decoded basic blocks over the lanes of resident thread blocks until all threads have ended."""

from dataclasses import dataclass

import numpy as np

from tuner.simulator.ptx.decode.program import DecodedBlock, Ending
from tuner.simulator.ptx.defects import Defect, Fault, SimulationError, at
from tuner.simulator.ptx.dtypes import Bools
from tuner.simulator.ptx.geometry import WARP_LANES
from tuner.simulator.ptx.instruction import PtxKernel
from tuner.simulator.ptx.state.resident_blocks import ResidentBlocks
from tuner.simulator.ptx.state.thread_states import ENDED, RUNS, Threads

STEPS_LIMIT = 20_000_000  # basic blocks that resident thread blocks may execute; above: an endless loop


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
    ) -> None:
        self._kernel = kernel
        self._program = program
        self._resident = resident
        self._counts = counts
        self._rng = rng
        self._unit = np.arange(resident.geometry.lanes) // unit_lanes
        self._threads = Threads(resident)
        self._is_ahead = self._blocks_ahead()

    def run(self, instructions: int | None = None) -> None:
        """Executes until all threads have ended, then reports asynchronous operations never waited for.

        With ``instructions``, stops after about this many instructions, each counted once for all lanes that
        run together, and reports nothing unless all threads have ended before. Raises SimulationError for a
        fault of an instruction, a deadlock, or more than 20 million basic blocks (an endless loop).
        """
        for _ in range(STEPS_LIMIT):
            if instructions is not None and self._resident.time >= instructions:
                return
            lanes = self._next()
            if lanes is None:
                break
            self._run_block(lanes)
        else:
            raise self._failed(Defect.ENDLESS, f"found more than {STEPS_LIMIT} basic blocks")
        try:
            self._resident.report_unfinished()
        except Fault as fault:  # of a store that was not complete
            raise self._failed(fault.kind, fault.reason) from None

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
