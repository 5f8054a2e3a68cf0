"""Branches, in which lanes that do not enter a region are inactive; calls of functions."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tuner.mlir.bindings import Op, ir
from tuner.mlir.rewrite.symbols import callee_of
from tuner.programs.interpret.body import AbstractBody
from tuner.programs.interpret.buffer_view import merged
from tuner.programs.interpret.element_types import Array
from tuner.programs.interpret.frame import LaneFrame, Step, require
from tuner.programs.interpret.scope import Decode, FunctionScope, where_of


def run_where(frame: LaneFrame, condition: Array, body: AbstractBody) -> list[Any] | None:
    """Runs a region in the active lanes where ``condition`` is True; returns the values that it yields.

    Returns None, and runs nothing, if there is no such lane. The mask of ``frame`` is restored at the end.
    """
    outside = frame.mask
    inside = outside & condition
    if not inside.any():
        return None
    frame.mask = outside if (inside == outside).all() else inside
    try:
        return body.run(frame)
    finally:
        frame.mask = outside


def put(frame: LaneFrame, targets: Sequence[int], condition: Array, values: list[Any] | None) -> None:
    """Stores ``values`` in the slots ``targets`` where ``condition`` is True; other lanes keep their values.

    Does nothing if ``values`` is None.
    """
    for target, value in zip(targets, values or (), strict=values is not None):
        frame.values[target] = merged(condition, value, frame.values[target])


def if_else(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``scf.if``: each lane executes the region that its condition selects.

    A step is a function that executes ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA
    values to frame slots.
    """
    condition, targets = scope.slot(op.operands[0]), scope.slots(op.results)
    then, other = (scope.body(region) if region.blocks else None for region in op.regions)
    assert then is not None

    def step(frame: LaneFrame) -> None:
        holds = frame.values[condition]
        taken = run_where(frame, holds, then)
        left = run_where(frame, ~holds, other) if other is not None else None
        for number, target in enumerate(targets):
            if taken is None or left is None:
                frame.values[target] = (taken or left or [])[number]
            else:
                frame.values[target] = merged(holds, taken[number], left[number])

    return step


def switch(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``scf.index_switch``: each lane executes the region of its case, or the default.

    A step is a function that executes ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA
    values to frame slots.
    """
    chosen, targets = scope.slot(op.operands[0]), scope.slots(op.results)
    default, *cases = (scope.body(region) for region in op.regions)
    numbers = list(ir.DenseI64ArrayAttr(op.attributes["cases"]))

    def step(frame: LaneFrame) -> None:
        value = frame.values[chosen]
        conditions = [value == number for number in numbers]
        conditions.append(~np.isin(value, numbers))
        for target in targets:
            frame.values[target] = None
        for condition, body in zip(conditions, [*cases, default], strict=True):
            put(frame, targets, condition, run_where(frame, condition, body))

    return step


def region(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``scf.execute_region`` or ``memref.alloca_scope``: executes the only region once.

    A step is a function that executes ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA
    values to frame slots.
    """
    body, targets = scope.body(op.regions[0]), scope.slots(op.results)

    def step(frame: LaneFrame) -> None:
        frame.put(targets, body.run(frame))

    return step


def call(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``func.call`` of a function in the kernel's module.

    A step is a function that executes ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA
    values to frame slots. Raises CandidateError(COMPILE) for a callee without a body, for recursion, and for
    unsupported operations.
    """
    name = callee_of(op)
    function = scope.function(name, op)
    sources, targets = scope.slots(op.operands), scope.slots(op.results)

    def step(frame: LaneFrame) -> None:
        results = function.run(frame.call(function.slots), frame.take(sources))
        frame.put(targets, results)

    return step


def assertion(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``cf.assert``: raises CandidateError(RUN) if an active lane's condition is false.

    A step is a function that executes ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA
    values to frame slots.
    """
    condition, where = scope.slot(op.operands[0]), where_of(op)
    said = ir.StringAttr(op.attributes["msg"]).value

    def step(frame: LaneFrame) -> None:
        require(frame.values[condition], frame, where, f"found false, {said!r},")

    return step


def two_ways(op: Op, scope: FunctionScope) -> Callable[[LaneFrame], Sequence[Array]]:
    """Returns the function that evaluates a ``cf.cond_br`` in a frame: masks (true branch, false branch)."""
    condition = scope.slot(op.operands[0])
    return lambda frame: (frame.values[condition], ~frame.values[condition])


def many_ways(op: Op, scope: FunctionScope) -> Callable[[LaneFrame], Sequence[Array]]:
    """Returns the function that evaluates a ``cf.switch`` in a frame: a mask per successor, default first."""
    chosen = scope.slot(op.operands[0])
    numbers = [int(each) for each in ir.DenseIntElementsAttr(op.attributes["case_values"])]

    def choose(frame: LaneFrame) -> Sequence[Array]:
        value = frame.values[chosen]
        return [~np.isin(value, numbers), *(value == number for number in numbers)]

    return choose


CHOICES = {"cf.cond_br": two_ways, "cf.switch": many_ways}
DECODERS: dict[str, Decode] = {
    "scf.if": if_else,
    "scf.index_switch": switch,
    **dict.fromkeys(("scf.execute_region", "memref.alloca_scope"), region),
    "func.call": call,
    "cf.assert": assertion,
}
