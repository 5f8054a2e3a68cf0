"""Values of lanes grouped by subgroup, and checks that lanes act together."""

from collections.abc import Callable

import numpy as np

from tuner.programs.interpret.buffer_view import with_trailing_axes
from tuner.programs.interpret.element_types import Array
from tuner.programs.interpret.frame import LaneFrame, fault
from tuner.programs.interpret.lane_grid import SUBGROUP, LaneGrid


def by_subgroup(grid: LaneGrid, values: Array) -> Array:
    """Reshapes lane values (blocks, threads, ...) to (blocks, subgroups, 32, ...), padding with zeros.

    A subgroup is a warp of 32 lanes; the last subgroup of a block is padded if it has fewer threads.
    """
    rest = values.shape[2:]
    whole = np.broadcast_to(values, (*grid.shape, *rest))
    missing = -grid.threads % SUBGROUP
    if missing:
        blank = np.zeros((grid.count, missing, *rest), values.dtype)
        whole = np.concatenate([whole, blank], axis=1)
    return whole.reshape(grid.count, -1, SUBGROUP, *rest)


def by_lane(grid: LaneGrid, values: Array) -> Array:
    """Reshapes values (blocks, subgroups, 32, ...) to (blocks, threads, ...) and removes the padding."""
    return values.reshape(grid.count, -1, *values.shape[3:])[:, : grid.threads]


def active_by_subgroup(frame: LaneFrame) -> Array:
    """Returns whether each lane is active, of shape (blocks, subgroups, 32); False for padding."""
    return by_subgroup(frame.grid, frame.mask)


def require_whole_blocks(frame: LaneFrame, where: str) -> None:
    """Raises CandidateError(RUN) if some but not all threads of a block are active.

    Threads that have returned are not counted. On a device these threads would wait for ever at the operation
    ``where``. Blocks without an active thread pass.
    """
    mask, live = (np.broadcast_to(each, frame.grid.shape) for each in (frame.mask, frame.live))
    waits, away = np.any(mask, 1), np.any(live & ~mask, 1)
    _require(frame, where, waits & away, live & ~mask, "the threads of a block")


def require_whole_subgroups(frame: LaneFrame, where: str, width: int = SUBGROUP) -> None:
    """Raises CandidateError(RUN) if a subgroup has active lanes, but not all of its first ``width`` lanes.

    Lanes that have returned are not counted. Subgroups without an active lane pass. ``where`` names the
    operation in the message.
    """
    grid = frame.grid
    there = by_subgroup(grid, frame.live) & (np.arange(SUBGROUP) < width)
    away = there & ~active_by_subgroup(frame)
    waits = np.any(active_by_subgroup(frame), -1) & np.any(away, -1)
    missing = by_lane(grid, away & waits[..., None])
    _require(frame, where, np.any(missing, 1), missing, "the lanes of a subgroup")


def _require(frame: LaneFrame, where: str, bad: Array, missing: Array, who: str) -> None:
    if bad.any():
        block = int(np.argmax(bad))
        thread = int(np.argmax(missing[block]))
        lane = frame.grid.describe(block, thread)
        fault(where, f"found some of {who} only, not {lane}, allowed all of them or none")


def fold(values: Array, valid: Array, axis: int, combine: Callable[[Array, Array], Array]) -> Array:
    """Reduces values along ``axis`` by ``combine``, pairwise; omits values where ``valid`` is False.

    ``valid`` may lack the last axes of ``values``. The axis is kept, with size 1; where no value is valid the
    result is unspecified.
    """
    while values.shape[axis] > 1:
        half = -(-values.shape[axis] // 2)
        (one, other), (is_one, is_other) = (_halves(each, axis, half) for each in (values, valid))
        extra = values.ndim - valid.ndim
        both, first = with_trailing_axes(is_one & is_other, extra), with_trailing_axes(is_one, extra)
        values = np.where(both, combine(one, other), np.where(first, one, other))
        valid = is_one | is_other
    return values


def _halves(values: Array, axis: int, half: int) -> tuple[Array, Array]:
    """Returns both halves of an axis; the second may be padded with zeros, which are not valid."""
    first, second = (np.take(values, each, axis) for each in np.split(np.arange(values.shape[axis]), [half]))
    missing = half - second.shape[axis]
    if missing:
        shape = list(second.shape)
        shape[axis] = missing
        second = np.concatenate([second, np.zeros(shape, values.dtype)], axis)
    return first, second
