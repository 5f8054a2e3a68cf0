"""Values of lanes by subgroup, and lanes that must act together."""

from collections.abc import Callable

import numpy as np

from tuner.programs.interpret.buffer_view import behind
from tuner.programs.interpret.element_types import Array
from tuner.programs.interpret.frame import LaneFrame, fault
from tuner.programs.interpret.lane_grid import SUBGROUP, LaneGrid


def by_subgroup(grid: LaneGrid, values: Array) -> Array:
    """Returns values of shape (blocks, subgroups, 32, ...); lanes that are not there get zeros."""
    rest = values.shape[2:]
    whole = np.broadcast_to(values, (*grid.shape, *rest))
    missing = -grid.threads % SUBGROUP
    if missing:
        blank = np.zeros((grid.count, missing, *rest), values.dtype)
        whole = np.concatenate([whole, blank], axis=1)
    return whole.reshape(grid.count, -1, SUBGROUP, *rest)


def by_lane(grid: LaneGrid, values: Array) -> Array:
    """Returns values by subgroup as values of lanes again."""
    return values.reshape(grid.count, -1, *values.shape[3:])[:, : grid.threads]


def active_by_subgroup(frame: LaneFrame) -> Array:
    """Returns which lanes of each subgroup run."""
    return by_subgroup(frame.grid, frame.mask)


def require_whole_blocks(frame: LaneFrame, where: str) -> None:
    """Raises CandidateError(RUN) where some threads of a block wait for others that never come."""
    mask, live = (np.broadcast_to(each, frame.grid.shape) for each in (frame.mask, frame.live))
    waits, away = np.any(mask, 1), np.any(live & ~mask, 1)
    _require(frame, where, waits & away, live & ~mask, "the threads of a block")


def require_whole_subgroups(frame: LaneFrame, where: str, width: int = SUBGROUP) -> None:
    """Raises CandidateError(RUN) where some of the first lanes of a subgroup are not there to take part."""
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
    """Returns the values along an axis combined in pairs; what is not valid is left out.

    The axis stays, with size 1; where nothing is valid the result means nothing.
    """
    while values.shape[axis] > 1:
        half = -(-values.shape[axis] // 2)
        (one, other), (is_one, is_other) = (_halves(each, axis, half) for each in (values, valid))
        extra = values.ndim - valid.ndim
        both, first = behind(is_one & is_other, extra), behind(is_one, extra)
        values = np.where(both, combine(one, other), np.where(first, one, other))
        valid = is_one | is_other
    return values


def _halves(values: Array, axis: int, half: int) -> tuple[Array, Array]:
    """Returns both halves of an axis; the second may be filled up with zeros, which are not valid."""
    first, second = (np.take(values, each, axis) for each in np.split(np.arange(values.shape[axis]), [half]))
    missing = half - second.shape[axis]
    if missing:
        shape = list(second.shape)
        shape[axis] = missing
        second = np.concatenate([second, np.zeros(shape, values.dtype)], axis)
    return first, second
