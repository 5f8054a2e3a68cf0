"""Exchange of values between the lanes of a subgroup."""

from collections.abc import Callable

import numpy as np

from tuner.mlir.bindings import Op, ir
from tuner.mlir.rewrite.located_error import unsupported
from tuner.programs.interpret import flat_memory
from tuner.programs.interpret.buffer_view import with_trailing_axes
from tuner.programs.interpret.element_types import BOOL, Array
from tuner.programs.interpret.frame import LaneFrame, Step, fault
from tuner.programs.interpret.lane_grid import SUBGROUP
from tuner.programs.interpret.scope import Decode, FunctionScope, where_of
from tuner.programs.interpret.subgroups import (
    active_by_subgroup,
    by_lane,
    by_subgroup,
    require_whole_subgroups,
)

LANES = np.arange(SUBGROUP)
# Mode -> the number of the lane to read, from the lane's number and the offset.
SOURCES: dict[str, Callable[[Array, Array], Array]] = {
    "xor": lambda lane, offset: lane ^ offset,
    "up": lambda lane, offset: lane - offset,
    "down": lambda lane, offset: lane + offset,
    "idx": lambda _, offset: offset,
}


def shuffle(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``gpu.shuffle``: each lane reads a value of another lane of its subgroup.

    The results are the value and whether it is valid: False, with a poison value, if the source lane, or the
    lane itself, is not among the first ``width`` lanes. A step is a function that executes ``op`` in all
    active lanes (GPU threads) of a frame; ``scope`` maps SSA values to frame slots. The step raises
    CandidateError(RUN) if only some of these lanes take part, and for a width that differs between lanes or
    is not 1 to 32.
    """
    mode = str(op.attributes["mode"]).removeprefix("#gpu<shuffle_mode ").removesuffix(">")
    if mode not in SOURCES:
        raise unsupported(op, f"mode {mode}", ", ".join(SOURCES))
    (value, offset, width), where = scope.slots(op.operands), where_of(op)

    def step(frame: LaneFrame) -> None:
        lanes = _width(frame, where, frame.values[width])
        distance = by_subgroup(frame.grid, frame.values[offset]).astype(np.int64)
        source = SOURCES[mode](LANES, distance)
        is_valid = (source >= 0) & (source < lanes) & (lanes > LANES)
        _put(frame, scope_targets, where, frame.values[value], source, is_valid, lanes)

    scope_targets = scope.slots(op.results)
    return step


def rotate(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``gpu.rotate``: each lane reads the value of the lane ``offset`` further.

    The lanes wrap around after ``width``, an attribute of ``op`` like ``offset``; lanes from ``width`` on get
    poison, and False as second result. A step is a function that executes ``op`` in all active lanes (GPU
    threads) of a frame; ``scope`` maps SSA values to frame slots. The step raises CandidateError(RUN) if only
    some of the first ``width`` lanes take part.
    """
    value, where, targets = scope.slot(op.operands[0]), where_of(op), scope.slots(op.results)
    offset, width = (ir.IntegerAttr(op.attributes[name]).value for name in ("offset", "width"))
    source = ((LANES + offset) & (width - 1)) + (LANES & ~(width - 1))

    def step(frame: LaneFrame) -> None:
        shape = by_subgroup(frame.grid, frame.mask).shape
        _put(
            frame,
            targets,
            where,
            frame.values[value],
            np.broadcast_to(source, shape),
            np.broadcast_to(width > LANES, shape),
            width,
        )

    return step


def broadcast(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``gpu.subgroup_broadcast``, from a given lane or from the first active lane.

    The result is poison if the source lane is inactive or not one of 0 to 31. A step is a function that
    executes ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA values to frame slots.
    """
    source, *lane = scope.slots(op.operands)
    (target,) = scope.slots(op.results)

    def step(frame: LaneFrame) -> None:
        values, active = by_subgroup(frame.grid, frame.values[source]), active_by_subgroup(frame)
        if lane:
            number = by_subgroup(frame.grid, frame.values[lane[0]]).astype(np.int64)
        else:
            number = np.broadcast_to(active.argmax(-1)[..., None], active.shape)
        inside = (number >= 0) & (number < SUBGROUP)
        there = np.take_along_axis(active, np.where(inside, number, 0), 2)
        frame.values[target] = by_lane(frame.grid, _taken(values, number, inside & there))

    return step


def _width(frame: LaneFrame, where: str, values: Array) -> int:
    found = np.unique(values[frame.active(values.shape)])
    if len(found) != 1 or not 0 < found[0] <= SUBGROUP:
        fault(where, f"found width {found[:4].tolist()}, allowed one of 1 to {SUBGROUP}")
    return int(found[0])


def _put(
    frame: LaneFrame,
    targets: tuple[int, ...],
    where: str,
    values: Array,
    source: Array,
    is_valid: Array,
    width: int,
) -> None:
    require_whole_subgroups(frame, where, width)
    there = np.take_along_axis(active_by_subgroup(frame), np.where(is_valid, source, 0), 2)
    taken = _taken(by_subgroup(frame.grid, values), source, is_valid & there)
    frame.values[targets[0]] = by_lane(frame.grid, taken)
    frame.values[targets[1]] = by_lane(frame.grid, is_valid)


def _taken(values: Array, source: Array, is_valid: Array) -> Array:
    """Returns the value of lane ``source``, poison where ``is_valid`` is False."""
    axes = values.ndim - 3
    found = np.take_along_axis(values, with_trailing_axes(np.where(is_valid, source, 0), axes), 2)
    return np.where(with_trailing_axes(is_valid, axes), found, poison(values.dtype))


def poison(dtype: np.dtype[np.generic]) -> Array:
    """Returns the number that represents poison, in an array of size 1: NaN, -1 for integers, true for i1."""
    return np.full(dtype.itemsize, 1 if dtype == BOOL else flat_memory.POISON, np.uint8).view(dtype)[0:1]


DECODERS: dict[str, Decode] = {
    "gpu.shuffle": shuffle,
    "gpu.rotate": rotate,
    "gpu.subgroup_broadcast": broadcast,
}
