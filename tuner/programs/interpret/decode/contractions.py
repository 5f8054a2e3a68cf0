"""Reductions, contractions and outer products over the dimensions of vectors."""

import numpy as np

from tuner.mlir.bindings import Op, ir
from tuner.mlir.rewrite.located_error import unsupported
from tuner.programs.interpret.decode import integers
from tuner.programs.interpret.decode.combining import combination
from tuner.programs.interpret.decode.floats import fused
from tuner.programs.interpret.decode.steps import aligned, step_of
from tuner.programs.interpret.element_types import Array, signed, to_integer
from tuner.programs.interpret.frame import Step
from tuner.programs.interpret.scope import Decode, FunctionScope

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def reduction(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``vector.reduction``: combines the elements from the first to the last.

    A step is a function that executes ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA
    values to frame slots. Raises CandidateError(COMPILE) for an unsupported kind of reduction.
    """
    combine = combination(op, scope, str(op.attributes["kind"]))

    def compute(values: Array, start: Array | None = None) -> Array:
        parts = [values[:, :, number] for number in range(values.shape[2])]
        result = parts.pop(0) if start is None else start
        for part in parts:
            result = combine(result, part)
        return result

    return step_of(op, scope, compute)


def multi_reduction(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``vector.multi_reduction``: reduces a vector along some dimensions.

    Elements are combined in row-major order of the reduced dimensions. A step is a function that executes
    ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA values to frame slots. Raises
    CandidateError(COMPILE) for an unsupported kind of reduction.
    """
    combine = combination(op, scope, str(op.attributes["kind"]))
    axes = [2 + axis for axis in ir.DenseI64ArrayAttr(op.attributes["reduction_dims"])]

    def compute(values: Array, start: Array) -> Array:
        moved = np.moveaxis(values, axes, range(len(axes)))
        listed = moved.reshape(-1, *moved.shape[len(axes) :])
        result = start
        for part in listed:
            result = combine(result, part)
        return result

    return step_of(op, scope, compute)


def contract(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``vector.contract`` of kind add; floats are summed in float64 and rounded once.

    A step is a function that executes ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA
    values to frame slots. Raises CandidateError(COMPILE) for other kinds.
    """
    if str(op.attributes["kind"]) != "#vector.kind<add>":
        raise unsupported(op, str(op.attributes["kind"]), "#vector.kind<add>")
    maps = [ir.AffineMapAttr(each).value for each in ir.ArrayAttr(op.attributes["indexing_maps"])]
    words = ["".join(LETTERS[ir.AffineDimExpr(each).position] for each in one.results) for one in maps]
    sum_of = f"...{words[0]},...{words[1]}->...{words[2]}"
    dtype = scope.element(op, op.results[0].type).dtype

    def compute(one: Array, other: Array, start: Array) -> Array:
        if dtype.kind in "ib":
            whole = (signed(each).astype(np.int64) for each in (one, other))
            return to_integer(np.einsum(sum_of, *whole) + start, dtype)
        wide = (each.astype(np.float64) for each in (one, other))
        total: Array = np.einsum(sum_of, *wide) + start.astype(np.float64)
        return total.astype(dtype)

    return step_of(op, scope, compute)


def outer_product(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``vector.outerproduct`` of kind add, with or without an accumulator.

    Floats with an accumulator are computed by a fused multiply-add. A step is a function that executes ``op``
    in all active lanes (GPU threads) of a frame; ``scope`` maps SSA values to frame slots. Raises
    CandidateError(COMPILE) for other kinds.
    """
    if str(op.attributes["kind"]) != "#vector.kind<add>":
        raise unsupported(op, str(op.attributes["kind"]), "#vector.kind<add>")
    is_whole = scope.element(op, op.results[0].type).dtype.kind in "ib"

    def compute(one: Array, other: Array, start: Array | None = None) -> Array:
        if other.ndim == one.ndim:
            one, other = one[..., :, None], other[..., None, :]
        else:
            other = aligned(other, one)
        if start is None:
            return one * other
        if is_whole:
            return integers.BINARY["addi"](one * other, start)
        return fused(one, other, start)

    return step_of(op, scope, compute)


DECODERS: dict[str, Decode] = {
    "vector.reduction": reduction,
    "vector.multi_reduction": multi_reduction,
    "vector.contract": contract,
    "vector.outerproduct": outer_product,
}
