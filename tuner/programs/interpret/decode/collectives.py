"""Collective operations of a block's threads or a subgroup's lanes: barriers, reductions, ballots."""

import numpy as np

from tuner.mlir.bindings import Op, ir
from tuner.mlir.rewrite.located_error import unsupported
from tuner.programs.interpret.body import AbstractBody
from tuner.programs.interpret.decode.combining import Combine, combination
from tuner.programs.interpret.element_types import Array
from tuner.programs.interpret.frame import LaneFrame, Step
from tuner.programs.interpret.lane_grid import SUBGROUP
from tuner.programs.interpret.scope import Decode, FunctionScope, where_of
from tuner.programs.interpret.subgroups import (
    active_by_subgroup,
    by_lane,
    by_subgroup,
    fold,
    require_whole_blocks,
    require_whole_subgroups,
)


def barrier(op: Op, _: FunctionScope) -> Step:
    """Returns the step for ``gpu.barrier``: raises CandidateError(RUN) if a block's threads have diverged.

    A step is a function that is called with the frame of all lanes (GPU threads). Otherwise it does nothing,
    since all lanes run in lockstep. Threads that have returned are not counted.
    """
    where = where_of(op)
    return lambda frame: require_whole_blocks(frame, where)


def all_reduce(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``gpu.all_reduce``: reduces a value over a block's threads, by a kind or a region.

    A step is a function that executes ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA
    values to frame slots. The step raises CandidateError(RUN) if only some threads of a block take part.
    """
    source, target, where = scope.slot(op.operands[0]), scope.slot(op.results[0]), where_of(op)
    body = scope.body(op.regions[0]) if op.regions[0].blocks else None
    combine = combination(op, scope, str(op.attributes["op"])) if body is None else None

    def step(frame: LaneFrame) -> None:
        require_whole_blocks(frame, where)
        values = np.broadcast_to(frame.values[source], frame.grid.shape)
        valid = np.broadcast_to(frame.mask, frame.grid.shape)
        frame.values[target] = fold(values, valid, 1, combine or _by_region(frame, body))

    return step


def _by_region(frame: LaneFrame, body: AbstractBody | None) -> Combine:
    """Returns a region with two arguments as a binary function; its mask is of values, not of lanes."""
    assert body is not None

    def combine(one: Array, other: Array) -> Array:
        outside, frame.mask = frame.mask, np.ones((1, 1), bool)
        try:
            (found,) = body.run(frame, [one, other])
        finally:
            frame.mask = outside
        return np.asarray(found)

    return combine


def subgroup_reduce(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``gpu.subgroup_reduce``: reduces a value over each subgroup, or each cluster.

    Inactive lanes are omitted; for a ``uniform`` operation the step raises CandidateError(RUN) if only some
    lanes of a subgroup take part. A step is a function that executes ``op`` in all active lanes (GPU threads)
    of a frame; ``scope`` maps SSA values to frame slots. Raises CandidateError(COMPILE) for clusters that do
    not divide 32 lanes.
    """
    source, target, where = scope.slot(op.operands[0]), scope.slot(op.results[0]), where_of(op)
    combine = combination(op, scope, str(op.attributes["op"]))
    size, stride = (_number(op, f"cluster_{name}", default) for name, default in (("size", 0), ("stride", 1)))
    size = size or SUBGROUP // stride
    is_uniform = "uniform" in op.attributes
    if SUBGROUP % (size * stride):
        raise unsupported(op, f"clusters of {size} lanes, {stride} apart", f"parts of {SUBGROUP}")

    def step(frame: LaneFrame) -> None:
        if is_uniform:
            require_whole_subgroups(frame, where)
        values = by_subgroup(frame.grid, frame.values[source])
        rest = values.shape[3:]
        clusters = (*values.shape[:2], SUBGROUP // (size * stride), size, stride)
        valid = active_by_subgroup(frame).reshape(clusters)
        folded = fold(values.reshape(*clusters, *rest), valid, 3, combine)
        spread = np.broadcast_to(folded, (*clusters, *rest)).reshape(values.shape)
        frame.values[target] = by_lane(frame.grid, spread)

    return step


def _number(op: Op, name: str, default: int) -> int:
    return int(ir.IntegerAttr(op.attributes[name]).value) if name in op.attributes else default


def ballot(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``gpu.ballot``: bit i is 1 if lane i is active and its predicate is true.

    A step is a function that executes ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA
    values to frame slots.
    """
    source, target = scope.slot(op.operands[0]), scope.slot(op.results[0])
    dtype = scope.element(op, op.results[0].type).dtype

    def step(frame: LaneFrame) -> None:
        votes = by_subgroup(frame.grid, frame.values[source]) & active_by_subgroup(frame)
        bits = (votes.astype(np.uint64) << np.arange(SUBGROUP, dtype=np.uint64)).sum(-1, keepdims=True)
        spread = np.broadcast_to(bits.astype(np.uint64), votes.shape)
        frame.values[target] = by_lane(frame.grid, spread).astype(dtype)

    return step


DECODERS: dict[str, Decode] = {
    "gpu.barrier": barrier,
    "gpu.all_reduce": all_reduce,
    "gpu.subgroup_reduce": subgroup_reduce,
    "gpu.ballot": ballot,
}
