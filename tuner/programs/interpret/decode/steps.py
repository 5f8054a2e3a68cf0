"""Steps that compute their results from their operands alone, lane by lane."""

from collections.abc import Callable
from typing import Any, TypeAlias

from tuner.mlir.bindings import Op
from tuner.programs.interpret.buffer_view import with_trailing_axes
from tuner.programs.interpret.element_types import Array
from tuner.programs.interpret.frame import LaneFrame, Step
from tuner.programs.interpret.scope import Decode, FunctionScope

Compute: TypeAlias = Callable[..., Any]


def step_of(op: Op, scope: FunctionScope, compute: Compute) -> Step:
    """Returns the step that stores ``compute(*operands)`` as the only result of ``op``.

    ``compute`` gets the operands of all lanes as arrays, or memrefs. A step is a function that executes
    ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA values to frame slots.
    """
    sources, (target,) = scope.slots(op.operands), scope.slots(op.results)
    if len(sources) == 1:
        (only,) = sources

        def unary(frame: LaneFrame) -> None:
            frame.values[target] = compute(frame.values[only])

        return unary
    if len(sources) == 2:
        first, second = sources

        def binary(frame: LaneFrame) -> None:
            frame.values[target] = compute(frame.values[first], frame.values[second])

        return binary

    def step(frame: LaneFrame) -> None:
        frame.values[target] = compute(*(frame.values[slot] for slot in sources))

    return step


def elementwise(compute: Compute) -> Decode:
    """Returns the decoder of an operation whose only result is ``compute(*operands)``.

    A decoder takes an operation and its function's scope, and returns a step. ``compute`` gets the operands
    of all lanes as arrays, or memrefs, and does not depend on their types.
    """
    return lambda op, scope: step_of(op, scope, compute)


def of_result(make: Callable[[Any], Compute]) -> Decode:
    """Returns the decoder of an operation whose only result is ``make(dtype)(*operands)``.

    A decoder takes an operation and its function's scope, and returns a step. ``dtype`` is the numpy type of
    the result, or of its elements if it is a vector.
    """
    return lambda op, scope: step_of(op, scope, make(scope.element(op, op.results[0].type).dtype))


def aligned(scalar: Array, vector: Array) -> Array:
    """Returns ``scalar``, a number per lane, with appended axes of size 1: as many axes as ``vector``."""
    return with_trailing_axes(scalar, vector.ndim - scalar.ndim)
