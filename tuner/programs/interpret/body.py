"""Regions decoded to steps: one block, or several blocks between which lanes branch individually."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from tuner.core.errors import CandidateError, Stage
from tuner.programs.interpret.buffer_view import merged
from tuner.programs.interpret.element_types import Array
from tuner.programs.interpret.frame import LaneFrame, Step

# Iterations of one execution of a loop, and seconds of the processor; above: an endless loop.
ITERATIONS_LIMIT = 20_000_000
SECONDS_LIMIT = 300.0  # 'tuner run' ends a program after 600 s
CHECKED = 1 << 14  # iterations between two looks at the limits
DONE = np.iinfo(np.int64).max  # block number of a lane that has left the region


class LoopLimit:
    """A limit for the iterations of one execution of a loop, so that one that never ends is an error."""

    def __init__(self, where: str, clock: Callable[[], float] = time.thread_time) -> None:
        """``where`` names the loop in the error; ``clock`` returns seconds of the processor."""
        self._where = where
        self._clock = clock
        self._start_s = clock()
        self._count = 0

    def count(self) -> None:
        """Counts an iteration. Raises CandidateError(RUN) beyond ITERATIONS_LIMIT and SECONDS_LIMIT."""
        self._count += 1
        if self._count % CHECKED:
            return
        if self._count >= ITERATIONS_LIMIT:
            found = f"{ITERATIONS_LIMIT} iterations"
        elif self._clock() - self._start_s >= SECONDS_LIMIT:
            found = f"{SECONDS_LIMIT:g} s"
        else:
            return
        reason = (
            f"{self._where}: endless: found more than {found}; on the host launches run one after the other"
        )
        raise CandidateError(Stage.RUN, reason)


class AbstractBody(Protocol):
    """A region of MLIR operations, decoded so that it can be run for many GPU threads (lanes) at once."""

    def run(self, frame: LaneFrame, arguments: Sequence[Any] = ()) -> list[Any]:
        """Runs the region in the active lanes of ``frame``; returns the operands of its terminator.

        ``arguments`` are the values of the block arguments of the region's first block.
        """


@dataclass(frozen=True, eq=False)
class StraightBody:
    """A decoded region that consists of one block, whose steps are run in order."""

    arguments: tuple[int, ...]  # slots of the block arguments
    steps: tuple[Step, ...]
    yields: tuple[int, ...]  # slots of the yielded values

    def run(self, frame: LaneFrame, arguments: Sequence[Any] = ()) -> list[Any]:
        """Runs all steps in the active lanes of ``frame``; returns the values that the region yields.

        ``arguments`` are the values of the block arguments.
        """
        for slot, value in zip(self.arguments, arguments, strict=True):
            frame.values[slot] = value
        for step in self.steps:
            step(frame)
        return frame.take(self.yields)


@dataclass(frozen=True)
class Jump:
    """A branch of a decoded region to another block, with the frame slots of the operands that it passes."""

    target: int  # number of a block
    values: tuple[int, ...]  # slots of the branch operands


# Evaluates the conditional jumps of a block: one condition per jump, in the lanes of the frame.
Choose = Callable[[LaneFrame], Sequence[Array]]


@dataclass(eq=False)
class BodyBlock:
    """One block of a decoded region of several blocks: its steps, and where lanes go after them."""

    arguments: tuple[int, ...]  # slots of the block arguments
    steps: tuple[Step, ...]
    defined: tuple[int, ...]  # slots that the steps define
    jumps: tuple[Jump, ...] = ()
    choose: Choose | None = None  # None: all lanes take the first jump
    # slots of the yielded values, of a block that leaves the region
    yields: tuple[int, ...] = field(default=())


@dataclass(frozen=True, eq=False)
class BranchingBody:
    """A decoded region of several blocks, in which each lane (GPU thread) branches individually.

    The blocks are in reverse post-order. Lanes that are ahead wait: the first block that any lane has reached
    runs next, for all lanes that have reached it.
    """

    blocks: tuple[BodyBlock, ...]
    is_kernel: bool  # lanes that leave the region have ended

    def run(self, frame: LaneFrame, arguments: Sequence[Any] = ()) -> list[Any]:
        """Runs blocks until every active lane has left the region; returns the yielded values.

        ``arguments`` are the values of the first block's arguments. The mask of ``frame`` is restored at the
        end. If the region is a kernel, lanes that leave are removed from ``frame.live``.
        """
        outside, results = frame.mask, [None] * max(len(block.yields) for block in self.blocks)
        at = np.where(np.broadcast_to(outside, frame.grid.shape), 0, DONE)
        for slot, value in zip(self.blocks[0].arguments, arguments, strict=True):
            frame.values[slot] = value
        limit = LoopLimit("its blocks")
        while (number := int(at.min())) != DONE:
            limit.count()
            block, here = self.blocks[number], at == number
            frame.mask = here
            self._run_steps(block, frame)
            if block.jumps:
                self._jump(block, frame, here, at)
                continue
            at[here] = DONE
            for place, slot in enumerate(block.yields):
                results[place] = merged(here, frame.values[slot], results[place])
            if self.is_kernel:
                frame.live = frame.live & ~here
        frame.mask = outside
        return results

    def _run_steps(self, block: BodyBlock, frame: LaneFrame) -> None:
        """Runs a block; values that other lanes computed in this block before are kept."""
        before = frame.take(block.defined)
        for step in block.steps:
            step(frame)
        for slot, old in zip(block.defined, before, strict=True):
            frame.values[slot] = merged(frame.mask, frame.values[slot], old)

    def _jump(self, block: BodyBlock, frame: LaneFrame, here: Array, at: Array) -> None:
        conditions = [here] if block.choose is None else block.choose(frame)
        carried = [frame.take(jump.values) for jump in block.jumps]
        for jump, condition, values in zip(block.jumps, conditions, carried, strict=True):
            taken = here & condition
            at[taken] = jump.target
            for slot, value in zip(self.blocks[jump.target].arguments, values, strict=True):
                frame.values[slot] = merged(taken, value, frame.values[slot])
