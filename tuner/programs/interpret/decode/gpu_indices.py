"""Indices and sizes of a lane's block, thread and subgroup."""

from collections.abc import Callable

from tuner.mlir.bindings import Op
from tuner.mlir.rewrite.gpu_indices import axis_of
from tuner.programs.interpret.element_types import INDEX, Array
from tuner.programs.interpret.frame import LaneFrame, Step
from tuner.programs.interpret.lane_grid import SUBGROUP, LaneGrid, uniform
from tuner.programs.interpret.scope import Decode, FunctionScope

ALONG: dict[str, Callable[[LaneGrid, int], Array]] = {
    "gpu.thread_id": LaneGrid.thread_id,
    "gpu.block_id": LaneGrid.block_id,
    "gpu.block_dim": lambda grid, axis: uniform(grid.block[axis]),
    "gpu.grid_dim": lambda grid, axis: uniform(grid.grid[axis]),
    "gpu.global_id": lambda grid, axis: grid.block_id(axis) * grid.block[axis] + grid.thread_id(axis),
}
WITHOUT_AXIS: dict[str, Callable[[LaneGrid], Array]] = {
    "gpu.lane_id": lambda grid: grid.linear_thread % SUBGROUP,
    "gpu.subgroup_id": lambda grid: grid.linear_thread // SUBGROUP,
    "gpu.num_subgroups": lambda grid: uniform(-(-grid.threads // SUBGROUP)),
    "gpu.subgroup_size": lambda _: uniform(SUBGROUP),
}


def along(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for gpu.thread_id, gpu.block_id, gpu.global_id, gpu.block_dim or gpu.grid_dim.

    A step is a function that executes ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA
    values to frame slots.
    """
    axis, index = axis_of(op), ALONG[op.name]
    return _put(op, scope, lambda grid: index(grid, axis))


def without_axis(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for gpu.lane_id, gpu.subgroup_id, gpu.num_subgroups or gpu.subgroup_size.

    A step is a function that executes ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA
    values to frame slots.
    """
    return _put(op, scope, WITHOUT_AXIS[op.name])


def _put(op: Op, scope: FunctionScope, make: Callable[[LaneGrid], Array]) -> Step:
    (target,) = scope.slots(op.results)

    def step(frame: LaneFrame) -> None:
        frame.values[target] = make(frame.grid).astype(INDEX, copy=False)

    return step


DECODERS: dict[str, Decode] = {
    **dict.fromkeys(ALONG, along),
    **dict.fromkeys(WITHOUT_AXIS, without_axis),
}
