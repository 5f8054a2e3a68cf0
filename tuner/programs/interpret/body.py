"""Regions as steps: one block, or several that lanes go through each in its own way."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from tuner.programs.interpret.buffer_view import merged
from tuner.programs.interpret.element_types import Array
from tuner.programs.interpret.frame import LaneFrame, Step

DONE = np.iinfo(np.int64).max  # place of a lane that has left the region


class AbstractBody(Protocol):
    """A region that can be run."""

    def run(self, frame: LaneFrame, arguments: Sequence[Any] = ()) -> list[Any]:
        """Runs the lanes of the frame's mask; returns what they yield."""


@dataclass(frozen=True, eq=False)
class StraightBody:
    """A region of one block."""

    arguments: tuple[int, ...]  # slots
    steps: tuple[Step, ...]
    yields: tuple[int, ...]  # slots

    def run(self, frame: LaneFrame, arguments: Sequence[Any] = ()) -> list[Any]:
        for slot, value in zip(self.arguments, arguments, strict=True):
            frame.values[slot] = value
        for step in self.steps:
            step(frame)
        return frame.take(self.yields)


@dataclass(frozen=True)
class Jump:
    """Where lanes go from the end of a block, and what they take along."""

    target: int  # number of a block
    values: tuple[int, ...]  # slots


# Chooses among the jumps of a block: a condition for each, in the lanes of the frame.
Choose = Callable[[LaneFrame], Sequence[Array]]


@dataclass(eq=False)
class BodyBlock:
    """One of several blocks of a region."""

    arguments: tuple[int, ...]  # slots
    steps: tuple[Step, ...]
    defined: tuple[int, ...]  # slots that the steps fill
    jumps: tuple[Jump, ...] = ()
    choose: Choose | None = None  # None: all take the first jump
    yields: tuple[int, ...] = field(default=())  # of a block that leaves the region


@dataclass(frozen=True, eq=False)
class BranchingBody:
    """A region of several blocks, in reverse post-order.

    Lanes that have come furthest wait: the first block that any lane is at runs next, with all lanes there.
    """

    blocks: tuple[BodyBlock, ...]
    is_kernel: bool  # lanes that leave it are gone

    def run(self, frame: LaneFrame, arguments: Sequence[Any] = ()) -> list[Any]:
        outside, results = frame.mask, [None] * max(len(block.yields) for block in self.blocks)
        at = np.where(np.broadcast_to(outside, frame.grid.shape), 0, DONE)
        for slot, value in zip(self.blocks[0].arguments, arguments, strict=True):
            frame.values[slot] = value
        while (number := int(at.min())) != DONE:
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
        """Runs a block; what other lanes have computed in it before stays theirs."""
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
