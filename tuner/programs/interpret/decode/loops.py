"""Loops, which continue with the lanes that have iterations left, until no lane has any."""

import itertools
from typing import Any

import numpy as np

from tuner.mlir.bindings import Op
from tuner.mlir.rewrite.located_error import unsupported
from tuner.programs.interpret.body import AbstractBody, LoopLimit
from tuner.programs.interpret.buffer_view import merged
from tuner.programs.interpret.element_types import Array
from tuner.programs.interpret.frame import LaneFrame, Step, require
from tuner.programs.interpret.scope import Decode, FunctionScope, where_of


def for_loop(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``scf.for``, in which each lane has its own number of iterations.

    A step is a function that executes ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA
    values to frame slots. The step raises CandidateError(RUN) for a loop step below 1.
    """
    lower, upper, stride, *starts = scope.slots(op.operands)
    targets, body, where = scope.slots(op.results), scope.body(op.regions[0]), where_of(op)
    is_unsigned = "unsignedCmp" in op.attributes

    def step(frame: LaneFrame) -> None:
        first, end, by = frame.take((lower, upper, stride))
        if is_unsigned:
            first, end, by = (each.view(f"u{each.itemsize}") for each in (first, end, by))
        require(by > 0, frame, where, lambda lane: f"found step {by[lane]}, allowed above 0,")
        carried = frame.take(starts)
        frame.put(targets, run_loop(frame, body, first, end, by, carried))

    return step


def run_loop(
    frame: LaneFrame, body: AbstractBody, first: Array, end: Array, by: Array, carried: list[Any]
) -> list[Any]:
    """Runs a loop body in each active lane with the index from ``first``, below ``end``, in steps of ``by``.

    ``carried`` are the initial values of the loop-carried variables, which ``body`` receives after the index.
    Returns their values after each lane's last iteration.
    """
    outside, index = frame.mask, first
    dtype = np.dtype(f"i{first.itemsize}")
    try:
        while True:
            goes_on = outside & (index < end)
            if not goes_on.any():
                return carried
            is_same = bool((goes_on == outside).all())
            frame.mask = outside if is_same else goes_on
            new = body.run(frame, [index.view(dtype), *carried])
            carried = new if is_same else list(map(merged, itertools.repeat(goes_on), new, carried))
            before, index = index, index + by
            end = np.where(index < before, index, end)  # after wrap-around: no more iterations
    finally:
        frame.mask = outside


def while_loop(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``scf.while``, in which each lane leaves the loop when its condition is false.

    A step is a function that executes ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA
    values to frame slots.
    """
    starts, targets = scope.slots(op.operands), scope.slots(op.results)
    before, after = (scope.body(region) for region in op.regions)
    where = where_of(op)

    def step(frame: LaneFrame) -> None:
        outside, results = frame.mask, [None] * len(targets)
        carried = frame.take(starts)
        try:
            limit = LoopLimit(where)
            while True:
                limit.count()
                condition, *values = before.run(frame, carried)
                leaves = frame.mask & ~condition
                results = [
                    merged(leaves, new, old) if leaves.any() else old
                    for new, old in zip(values, results, strict=True)
                ]
                goes_on = frame.mask & condition
                if not goes_on.any():
                    break
                frame.mask = goes_on
                carried = after.run(frame, values)
        finally:
            frame.mask = outside
        frame.put(targets, results)

    return step


def parallel(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``scf.parallel`` without reductions: each lane executes the iterations in order.

    A step is a function that executes ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA
    values to frame slots. The step raises CandidateError(RUN) for a loop step below 1. Raises
    CandidateError(COMPILE) for a reduction.
    """
    if op.results:
        raise unsupported(op, "a reduction", "loops without one")
    count = len(op.operands) // 3
    slots = scope.slots(op.operands)
    body, where = scope.body(op.regions[0]), where_of(op)

    def step(frame: LaneFrame) -> None:
        lower, upper, by = (frame.take(slots[at : at + count]) for at in (0, count, 2 * count))
        for each in by:
            require(each > 0, frame, where, "found a step below 1")
        _nest(frame, body, list(zip(lower, upper, by, strict=True)), [])

    return step


class _Inner:
    """The body of the outer loops of a nest: runs the inner loops."""

    def __init__(
        self, body: AbstractBody, loops: list[tuple[Array, Array, Array]], places: list[Any]
    ) -> None:
        self._body, self._loops, self._places = body, loops, places

    def run(self, frame: LaneFrame, arguments: Any = ()) -> list[Any]:
        _nest(frame, self._body, self._loops, [*self._places, *arguments])
        return []


def _nest(
    frame: LaneFrame, body: AbstractBody, loops: list[tuple[Array, Array, Array]], places: list[Any]
) -> None:
    if not loops:
        body.run(frame, places)
        return
    first, end, by = loops[0]
    run_loop(frame, _Inner(body, loops[1:], places), first, end, by, [])


DECODERS: dict[str, Decode] = {
    "scf.for": for_loop,
    "scf.while": while_loop,
    "scf.parallel": parallel,
}
