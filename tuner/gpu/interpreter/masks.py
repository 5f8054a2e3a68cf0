"""Steps of ``vector.mask``: only the elements that the mask selects take part in the operation inside."""

import itertools
from collections.abc import Callable

import numpy as np

from tuner.gpu.interpreter.arithmetic import FLOAT_BINARY, INTEGER_BINARY, combination
from tuner.gpu.interpreter.decoding import FunctionScope, LaneFrame, Step
from tuner.gpu.interpreter.vector_memory import transfer_read, transfer_write
from tuner.mlir.bindings import Op, ir
from tuner.mlir.ir.reading import maps_in, ops_in, unsupported

Masked = Callable[[Op, FunctionScope, int], Step]  # takes the slot of the mask


def mask(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``vector.mask``, which holds at most one operation.

    Where the mask is false, the result is that of the second operand, if ``op`` has one. Raises
    CandidateError(COMPILE) for operations inside that the interpreter does not mask.
    """
    *ops, end = ops_in(op.regions[0].blocks[0])
    targets = scope.slots(op.results)
    yielded = scope.slots(end.operands)
    chosen, *other = scope.slots(op.operands)
    if len(ops) > 1:
        raise unsupported(op, "several operations", "one")
    if ops and ops[0].name not in MASKED:
        raise unsupported(op, f"a mask of {ops[0].name}", ", ".join(MASKED))
    step_of_masked = MASKED[ops[0].name](ops[0], scope, chosen) if ops else None

    def step(frame: LaneFrame) -> None:
        if step_of_masked is not None:
            step_of_masked(frame)
        for slot, target in zip(yielded, targets, strict=True):
            value = frame.values[slot]
            if other:
                frame.values[target] = np.where(frame.values[chosen], value, frame.values[other[0]])
            else:
                frame.values[target] = value

    return step


def reduction(op: Op, scope: FunctionScope, chosen: int) -> Step:
    """Returns the step for a masked ``vector.reduction`` or ``vector.multi_reduction`` with an accumulator.

    ``chosen``: the frame slot of the mask. Raises CandidateError(COMPILE) for a reduction without
    accumulator.
    """
    combine = combination(op, scope, str(op.attributes["kind"]))
    source, *start = scope.slots(op.operands)
    target = scope.slot(op.results[0])
    if not start:
        raise unsupported(op, "no accumulator", "one, in a mask")
    name = "reduction_dims"
    reduced = list(ir.DenseI64ArrayAttr(op.attributes[name])) if name in op.attributes else [0]

    def step(frame: LaneFrame) -> None:
        axes = [2 + axis for axis in reduced]
        values, takes_part = (
            np.moveaxis(frame.values[slot], axes, range(len(axes))) for slot in (source, chosen)
        )
        rows = values.reshape(-1, *values.shape[len(axes) :])
        masks = takes_part.reshape(-1, *takes_part.shape[len(axes) :])
        result = frame.values[start[0]]
        for row, row_mask in zip(rows, masks, strict=True):
            result = np.where(row_mask, combine(result, row), result)
        frame.values[target] = result

    return step


def contraction(op: Op, scope: FunctionScope, chosen: int) -> Step:
    """Returns the step for a masked ``vector.contract``, which combines products in row-major order of loops.

    ``chosen``: the frame slot of the mask.
    """
    combine = combination(op, scope, str(op.attributes["kind"]))
    sources = scope.slots(op.operands)
    target = scope.slot(op.results[0])
    maps = maps_in(op)
    axes = [[ir.AffineDimExpr(result).position for result in mapping.results] for mapping in maps]
    is_whole = scope.element(op, op.results[0].type).dtype.kind in "ib"
    multiply = INTEGER_BINARY["muli"] if is_whole else FLOAT_BINARY["mulf"]

    def step(frame: LaneFrame) -> None:
        left, right, start = frame.take(sources)
        takes_part = frame.values[chosen]
        result = start.copy()
        for place in itertools.product(*map(range, takes_part.shape[2:])):
            at = [tuple(place[axis] for axis in loops) for loops in axes]
            pairs = zip((left, right), at[:2], strict=True)
            product = multiply(*(values[:, :, *index].astype(start.dtype) for values, index in pairs))
            before = result[:, :, *at[2]]
            result[:, :, *at[2]] = np.where(takes_part[:, :, *place], combine(before, product), before)
        frame.values[target] = result

    return step


MASKED: dict[str, Masked] = {
    "vector.transfer_read": lambda op, scope, chosen: transfer_read(op, scope, (chosen,)),
    "vector.transfer_write": lambda op, scope, chosen: transfer_write(op, scope, (chosen,)),
    "vector.reduction": reduction,
    "vector.multi_reduction": reduction,
    "vector.contract": contraction,
}
