"""The state on which a function's steps operate: the values of its lanes, and which lanes are active."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from tuner.core.errors import CandidateError, Stage
from tuner.programs.interpret.buffer_view import BufferView, with_trailing_axes
from tuner.programs.interpret.element_types import Array
from tuner.programs.interpret.lane_grid import LaneGrid

ALL: Array = np.ones((1, 1), bool)


@dataclass(eq=False)
class BlockMemory:
    """Globals and dynamic shared memory of the blocks that run together; buffers are made at first use."""

    dynamic_bytes: int  # size of each block's dynamic shared memory
    # symbol -> buffer; dynamic shared memory has the name ""
    made: dict[str, BufferView] = field(default_factory=dict)


@dataclass(eq=False)
class LaneFrame:
    """The state of one function call in all GPU threads (lanes) that run together: one slot per SSA value.

    ``mask`` selects the lanes that execute the next step.
    """

    values: list[Any]  # by slot: arrays of shape (blocks, threads, *vector), or BufferView
    grid: LaneGrid
    memory: BlockMemory
    write: Callable[[str], object]  # receives the text that a kernel prints
    mask: Array = field(default_factory=ALL.copy)
    live: Array = field(default_factory=ALL.copy)  # lanes that have not returned

    def call(self, slots: int) -> "LaneFrame":
        """Returns a frame with ``slots`` empty slots for a function that the active lanes call.

        Grid, memory, mask and live lanes are those of this frame.
        """
        return LaneFrame([None] * slots, self.grid, self.memory, self.write, self.mask, self.live)

    def take(self, slots: Sequence[int]) -> list[Any]:
        """Returns the values in the given slots, in the order of ``slots``."""
        return [self.values[slot] for slot in slots]

    def put(self, slots: Sequence[int], values: Sequence[Any]) -> None:
        """Stores ``values``, one in each of ``slots``, which must have the same length."""
        for slot, value in zip(slots, values, strict=True):
            self.values[slot] = value

    def active(self, shape: tuple[int, ...]) -> Array:
        """Returns a boolean array that is True where an element belongs to an active lane.

        ``shape`` is (blocks, threads, ...). Where ``shape`` has size 1 for blocks or threads, an element
        belongs to all lanes along that axis.
        """
        mask = self.mask
        for axis in range(2):
            if shape[axis] == 1 and mask.shape[axis] > 1:
                mask = np.any(mask, axis=axis, keepdims=True)
        return np.broadcast_to(with_trailing_axes(mask, len(shape) - 2), shape)


Step: TypeAlias = Callable[[LaneFrame], None]


def require(
    holds: Array, frame: LaneFrame, where: str, found: str | Callable[[tuple[int, ...]], str]
) -> None:
    """Raises CandidateError(RUN) if a condition is false in an active lane; the message names one such lane.

    Args:
        holds: the condition per lane.
        where: name and location of the operation.
        found: the message, or a function from an index of ``holds`` to the message.
    """
    if holds.all():
        return
    bad = frame.active(holds.shape) & ~holds
    if bad.any():
        place = tuple(int(number) for number in np.argwhere(bad)[0])
        on = np.argwhere(np.broadcast_to(frame.mask, frame.grid.shape))
        same = [axis for axis in range(2) if holds.shape[axis] > 1]
        lane = next(each for each in on if all(each[axis] == place[axis] for axis in same))
        said = found if isinstance(found, str) else found(place)
        fault(where, f"{said} in {frame.grid.describe(*map(int, lane))}")


def fault(where: str, message: str) -> None:
    """Always raises CandidateError(RUN) for ``message``, preceded by the operation's name ``where``."""
    raise CandidateError(Stage.RUN, f"{where}: {message}")
