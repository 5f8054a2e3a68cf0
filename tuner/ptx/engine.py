"""Runs decoded blocks over the lanes of a chunk until every thread has ended."""

from dataclasses import dataclass

import numpy as np

from tuner.ptx.chunk import Chunk
from tuner.ptx.decode.program import DecodedBlock, Ending
from tuner.ptx.defects import Defect, Fault, SimulationError, at
from tuner.ptx.dtypes import Bools
from tuner.ptx.geometry import WARP_LANES
from tuner.ptx.instruction import Kernel
from tuner.ptx.threads import ENDED, RUNS, Threads

STEPS_LIMIT = 20_000_000  # basic blocks that one chunk may run: more is an endless loop


@dataclass
class Counts:
    """How much a launch has run."""

    instructions: int = 0  # of warps
    blocks: int = 0


class Engine:
    """Schedules the threads of one chunk.

    Without a random generator every lane at the lowest basic block runs at once, so that diverged lanes wait
    for one another where their ways meet. With one, a random warp runs up to its next branch.
    """

    def __init__(
        self,
        kernel: Kernel,
        program: tuple[DecodedBlock, ...],
        chunk: Chunk,
        counts: Counts,
        rng: np.random.Generator | None,
        unit_lanes: int = WARP_LANES,  # that random scheduling moves together
    ) -> None:
        self._kernel = kernel
        self._program = program
        self._chunk = chunk
        self._counts = counts
        self._rng = rng
        self._unit = np.arange(chunk.geometry.lanes) // unit_lanes
        self._threads = Threads(chunk)

    def run(self) -> None:
        """Runs to the end. Raises SimulationError for what has no defined result."""
        for _ in range(STEPS_LIMIT):
            lanes = self._next()
            if lanes is None:
                break
            self._run_block(lanes)
        else:
            raise self._failed(Defect.ENDLESS, f"found more than {STEPS_LIMIT} basic blocks")
        self._chunk.report_unfinished()

    def _next(self) -> Bools | None:
        """Returns the lanes that run next, all at one block; None when every thread has ended."""
        threads = self._threads
        try:
            threads.release()
        except Fault as fault:
            raise self._failed(fault.kind, fault.reason) from None
        if self._chunk.mbarriers.has_progress:
            self._chunk.mbarriers.has_progress = False
            threads.wake()
        runs = threads.status == RUNS
        if not runs.any():
            if (threads.status == ENDED).all():
                return None
            if threads.is_stuck or not self._chunk.bulk.has_loads:
                raise self._failed(Defect.DEADLOCK, threads.stuck())
            threads.is_stuck = True
            threads.wake()
            runs = threads.status == RUNS
        if self._rng is not None:
            runs &= self._unit == self._rng.choice(np.unique(self._unit[runs]))
        found: Bools = runs & (threads.block == threads.block[runs].min())
        return found

    def _run_block(self, lanes: Bools) -> None:
        chunk, threads = self._chunk, self._threads
        number = int(threads.block[lanes.argmax()])
        block = self._program[number]
        chunk.set_mask(lanes)
        self._counts.instructions += block.length * int(lanes.reshape(-1, WARP_LANES).any(axis=1).sum())
        for instruction, step in block.steps:
            chunk.watch.instruction = instruction
            chunk.time += 1
            try:
                step(chunk)
            except Fault as fault:
                raise at(instruction, fault) from None
        if block.ending is not None:
            self._end(block.ending, lanes, block.following)
        elif block.following is None:
            threads.exit(lanes)
        else:
            threads.block[lanes] = block.following

    def _end(self, ending: Ending, lanes: Bools, following: int | None) -> None:
        chunk = self._chunk
        chunk.watch.instruction = ending.instruction
        chunk.time += 1
        taken = lanes
        guard, is_negated = ending.guard
        if guard is not None:
            holds = guard(chunk)
            taken = lanes & (~holds if is_negated else holds)
        after = 0 if following is None else following
        self._threads.block[lanes & ~taken] = after
        if not taken.any():
            return
        try:
            ending.terminator(self._threads, taken, after)
        except Fault as fault:
            raise at(ending.instruction, fault) from None

    def _failed(self, kind: Defect, reason: str) -> SimulationError:
        return SimulationError(kind, 0, f"kernel {self._kernel.name}: {kind.value}: {reason}")
