"""Steps of control flow: branches, calls and loops; lanes that do not take part are inactive.

A function named like an operation decodes it: it takes the operation and returns the step that the
interpreter runs. ``run_where`` runs a body for some lanes.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tuner.gpu.interpreter.decoding import (
    AbstractBody,
    Decode,
    FunctionScope,
    LaneFrame,
    LoopLimit,
    Step,
    require,
    where_of,
)
from tuner.gpu.interpreter.lanes import Array, merged
from tuner.mlir.bindings import Op, ir
from tuner.mlir.ir.reading import callee_of

# Branches, in which lanes that do not enter a region are inactive; calls of functions.


def run_where(frame: LaneFrame, condition: Array, body: AbstractBody) -> list[Any] | None:
    """Runs a region in the active lanes where ``condition`` holds; returns the values that the region yields.

    Returns None, and runs nothing, if the condition holds in no active lane.
    """
    outside = frame.mask
    inside = frame.mask & condition
    if not inside.any():
        return None
    frame.mask = outside if (inside == outside).all() else inside
    try:
        return body.run(frame)
    finally:
        frame.mask = outside


def if_else(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``scf.if``: each lane executes the region that its condition selects."""
    condition = scope.slot(op.operands[0])
    targets = scope.slots(op.results)
    then, other = (scope.body(region) if region.blocks else None for region in op.regions)
    assert then is not None

    def step(frame: LaneFrame) -> None:
        holds = frame.values[condition]
        taken = run_where(frame, holds, then)
        left = run_where(frame, ~holds, other) if other is not None else None
        for index, target in enumerate(targets):
            if taken is None or left is None:
                frame.values[target] = (taken or left or [])[index]
            else:
                frame.values[target] = merged(holds, taken[index], left[index])

    return step


def switch(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``scf.index_switch``: each lane executes its case's region, or the default's."""
    chosen = scope.slot(op.operands[0])
    targets = scope.slots(op.results)
    default, *cases = map(scope.body, op.regions)
    numbers = list(ir.DenseI64ArrayAttr(op.attributes["cases"]))

    def step(frame: LaneFrame) -> None:
        value = frame.values[chosen]
        conditions = [*(value == number for number in numbers), ~np.isin(value, numbers)]
        for target in targets:
            frame.values[target] = None
        for condition, body in zip(conditions, [*cases, default], strict=True):
            values = run_where(frame, condition, body)
            for target, new in zip(targets, values or (), strict=values is not None):
                frame.values[target] = merged(condition, new, frame.values[target])

    return step


def region(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``scf.execute_region`` or ``memref.alloca_scope``: runs the operation's region."""
    body = scope.body(op.regions[0])
    targets = scope.slots(op.results)

    def step(frame: LaneFrame) -> None:
        frame.put(targets, body.run(frame))

    return step


def call(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``func.call`` of a function in the kernel's module."""
    name = callee_of(op)
    function = scope.function(name, op)
    sources = scope.slots(op.operands)
    targets = scope.slots(op.results)

    def step(frame: LaneFrame) -> None:
        inner = frame.call(function.slots)
        frame.put(targets, function.body.run(inner, frame.take(sources)))

    return step


def assertion(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``cf.assert``: raises CandidateError(RUN) where a lane's condition is false."""
    condition = scope.slot(op.operands[0])
    where = where_of(op)
    said = ir.StringAttr(op.attributes["msg"]).value

    def step(frame: LaneFrame) -> None:
        require(frame.values[condition], frame, where, f"found false, {said!r},")

    return step


def branch_masks(op: Op, scope: FunctionScope) -> Callable[[LaneFrame], Sequence[Array]]:
    """Returns a function that gives two masks: the lanes that take each branch of a ``cf.cond_br``."""
    condition = scope.slot(op.operands[0])
    return lambda frame: (frame.values[condition], ~frame.values[condition])


def switch_masks(op: Op, scope: FunctionScope) -> Callable[[LaneFrame], Sequence[Array]]:
    """Returns a function that gives, per successor of a ``cf.switch``, the mask of lanes that branch to it.

    The default successor is first, then the cases in order.
    """
    chosen = scope.slot(op.operands[0])
    numbers = list(map(int, ir.DenseIntElementsAttr(op.attributes["case_values"])))

    def choose(frame: LaneFrame) -> Sequence[Array]:
        value = frame.values[chosen]
        return [~np.isin(value, numbers), *(value == number for number in numbers)]

    return choose


CHOICES = {"cf.cond_br": branch_masks, "cf.switch": switch_masks}
BRANCHES: dict[str, Decode] = {
    "scf.if": if_else,
    "scf.index_switch": switch,
    **dict.fromkeys(("scf.execute_region", "memref.alloca_scope"), region),
    "func.call": call,
    "cf.assert": assertion,
}


# Loops, which continue with the lanes that have iterations left, until no lane has any.


def for_loop(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``scf.for``, in which each lane has its own number of iterations."""
    lower, upper, stride, *starts = scope.slots(op.operands)
    targets = scope.slots(op.results)
    body = scope.body(op.regions[0])
    where = where_of(op)
    is_unsigned = "unsignedCmp" in op.attributes

    def step(frame: LaneFrame) -> None:
        first, end, by = frame.take((lower, upper, stride))
        if is_unsigned:
            first, end, by = (bound.view(f"u{bound.itemsize}") for bound in (first, end, by))
        require(by > 0, frame, where, lambda lane: f"found step {by[lane]}, allowed above 0,")
        carried = frame.take(starts)
        frame.put(targets, run_loop(frame, body, first, end, by, carried))

    return step


def run_loop(
    frame: LaneFrame, body: AbstractBody, first: Array, end: Array, by: Array, carried: list[Any]
) -> list[Any]:
    """Runs a loop body in each active lane with the index from ``first``, below ``end``, in steps of ``by``.

    Returns the loop-carried variables, ``carried`` at first, after each lane's last iteration.
    """
    outside = frame.mask
    index = first
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
            before = index
            index = index + by
            end = np.where(index < before, index, end)  # after wrap-around: no more iterations
    finally:
        frame.mask = outside


def while_loop(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``scf.while``, in which each lane leaves the loop when its condition is false."""
    starts = scope.slots(op.operands)
    targets = scope.slots(op.results)
    before, after = map(scope.body, op.regions)
    where = where_of(op)

    def step(frame: LaneFrame) -> None:
        outside = frame.mask
        results = [None] * len(targets)
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
    """Returns the step for ``scf.parallel``: lanes run the iterations, and combine reductions, in order."""
    count = (len(op.operands) - len(op.results)) // 3
    slots = scope.slots(op.operands)
    targets = scope.slots(op.results)
    where = where_of(op)
    body = _Reducing(scope.body(op.regions[0]), _combinations(op, scope)) if op.results else None
    plain = scope.body(op.regions[0]) if body is None else body

    def step(frame: LaneFrame) -> None:
        lower, upper, by = (frame.take(slots[at : at + count]) for at in (0, count, 2 * count))
        for step in by:
            require(step > 0, frame, where, "found a step below 1")
        if body is not None:
            body.totals = frame.take(slots[3 * count :])
        Nest(plain, tuple(zip(lower, upper, by, strict=True))).run(frame)
        frame.put(targets, body.totals if body is not None else ())

    return step


def _combinations(op: Op, scope: FunctionScope) -> tuple[AbstractBody, ...]:
    end = op.regions[0].blocks[0].operations[len(op.regions[0].blocks[0].operations) - 1]
    return tuple(map(scope.body, end.operation.regions))


@dataclass(eq=False)
class _Reducing:
    """The body of a parallel loop with reductions, and the totals of the iterations that have run."""

    body: AbstractBody
    combinations: tuple[AbstractBody, ...]
    totals: list[Any] = field(default_factory=list)

    def run(self, frame: LaneFrame, arguments: Sequence[Any] = ()) -> list[Any]:
        yielded = self.body.run(frame, arguments)
        for index, (combine, value) in enumerate(zip(self.combinations, yielded, strict=True)):
            (total,) = combine.run(frame, [self.totals[index], value])
            self.totals[index] = merged(frame.mask, total, self.totals[index])
        return []


@dataclass(frozen=True, eq=False)
class Nest:
    """A nest of loops around ``body``; ``outer`` holds the indices of the loops around the nest."""

    body: AbstractBody
    loops: tuple[tuple[Array, Array, Array], ...]  # lower bound, upper bound, step
    outer: tuple[Any, ...] = ()

    def run(self, frame: LaneFrame, arguments: Sequence[Any] = ()) -> list[Any]:
        indices = (*self.outer, *arguments)
        if not self.loops:
            return self.body.run(frame, indices)
        first, end, by = self.loops[0]
        return run_loop(frame, Nest(self.body, self.loops[1:], indices), first, end, by, [])


LOOPS: dict[str, Decode] = {"scf.for": for_loop, "scf.while": while_loop, "scf.parallel": parallel}

DECODERS: dict[str, Decode] = {**BRANCHES, **LOOPS}
