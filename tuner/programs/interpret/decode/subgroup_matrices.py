"""Matrices distributed over a subgroup: in this interpreter every lane has a copy of the whole matrix."""

import re
from typing import Any

import numpy as np

from tuner.mlir.bindings import Op, ir
from tuner.mlir.rewrite.located_error import unsupported
from tuner.programs.interpret import accesses
from tuner.programs.interpret.buffer_view import BufferView, with_trailing_axes
from tuner.programs.interpret.decode import floats, integers
from tuner.programs.interpret.decode.steps import Compute, step_of
from tuner.programs.interpret.decode.tensor_cores import multiplied
from tuner.programs.interpret.element_types import Array
from tuner.programs.interpret.frame import LaneFrame, Step
from tuner.programs.interpret.scope import Decode, FunctionScope, where_of
from tuner.programs.interpret.subgroups import require_whole_subgroups

SHAPE = re.compile(r"!gpu\.mma_matrix<([0-9]+)x([0-9]+)x(\w+),")
ELEMENTWISE: dict[str, Compute] = {
    "addf": floats.BINARY["addf"],
    "subf": floats.BINARY["subf"],
    "mulf": floats.BINARY["mulf"],
    "divf": floats.BINARY["divf"],
    "maxf": floats.BINARY["maximumf"],
    "minf": floats.BINARY["minimumf"],
    "addi": integers.BINARY["addi"],
    "subi": integers.BINARY["subi"],
    "muli": integers.BINARY["muli"],
    "negatef": np.negative,
    "negates": np.negative,
}


def shape_of(kind: Any) -> tuple[int, int]:
    """Returns (rows, columns) of an MLIR type ``!gpu.mma_matrix``."""
    match = SHAPE.match(str(kind))
    assert match is not None
    return int(match[1]), int(match[2])


def load(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``gpu.subgroup_mma_load_matrix``: each lane loads a copy of the whole matrix.

    A step is a function that executes ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA
    values to frame slots. The step raises CandidateError(RUN) for an access out of bounds, and if only some
    lanes of a subgroup take part.
    """
    source, *indices = scope.slots(op.operands)
    (target,), where = scope.slots(op.results), where_of(op)
    kind = scope.element(op, op.operands[0].type)
    places = _places(op, shape_of(op.results[0].type)) * kind.size_bytes

    def step(frame: LaneFrame) -> None:
        require_whole_subgroups(frame, where)
        view: BufferView = frame.values[source]
        first = view.at(frame.take(indices), kind.size_bytes)
        everything = np.ones((1, 1, *places.shape), bool)
        addresses = with_trailing_axes(first, 2) + places
        frame.values[target] = accesses.load_where(frame, where, view, kind, addresses, everything)

    return step


def store(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``gpu.subgroup_mma_store_matrix``: each lane stores the whole matrix.

    A step is a function that executes ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA
    values to frame slots. The step raises CandidateError(RUN) for an access out of bounds, and if only some
    lanes of a subgroup take part.
    """
    value, to, *indices = scope.slots(op.operands)
    kind, where = scope.element(op, op.operands[1].type), where_of(op)
    places = _places(op, shape_of(op.operands[0].type)) * kind.size_bytes

    def step(frame: LaneFrame) -> None:
        require_whole_subgroups(frame, where)
        view: BufferView = frame.values[to]
        first = view.at(frame.take(indices), kind.size_bytes)
        everything = np.ones((1, 1, *places.shape), bool)
        addresses, values = with_trailing_axes(first, 2) + places, frame.values[value]
        accesses.store_where(frame, where, view, kind, addresses, everything, values)

    return step


def _places(op: Op, shape: tuple[int, int]) -> Array:
    """Returns the offset of each matrix element from the first, in elements."""
    leading = ir.IntegerAttr(op.attributes["leadDimension"]).value
    row, column = np.indices(shape)
    if "transpose" in op.attributes:
        row, column = column, row
    places: Array = row * leading + column
    return places


def multiply(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``gpu.subgroup_mma_compute``: a @ b + c of matrices of a subgroup.

    Floats are computed in float64 and rounded once. A step is a function that executes ``op`` in all active
    lanes (GPU threads) of a frame; ``scope`` maps SSA values to frame slots.
    """
    is_transposed = ["a_transpose" in op.attributes, "b_transpose" in op.attributes]

    def compute(a: Array, b: Array, c: Array) -> Array:
        one, other = (
            each.swapaxes(-1, -2) if turned else each
            for each, turned in zip((a, b), is_transposed, strict=True)
        )
        return multiplied(one, other, c)

    return step_of(op, scope, compute)


def constant(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``gpu.subgroup_mma_constant_matrix``: a matrix with one number in all elements.

    A step is a function that executes ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA
    values to frame slots.
    """
    shape = shape_of(op.results[0].type)
    return step_of(
        op, scope, lambda value: np.broadcast_to(with_trailing_axes(value, 2), (*value.shape, *shape))
    )


def elementwise(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``gpu.subgroup_mma_elementwise``: the operation's function on each matrix element.

    A step is a function that executes ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA
    values to frame slots. Raises CandidateError(COMPILE) for an unsupported function.
    """
    name = str(op.attributes["opType"]).removeprefix("#gpu<mma_element_wise ").removesuffix(">")
    if name not in ELEMENTWISE:
        raise unsupported(op, name, ", ".join(ELEMENTWISE))
    return step_of(op, scope, ELEMENTWISE[name])


DECODERS: dict[str, Decode] = {
    "gpu.subgroup_mma_load_matrix": load,
    "gpu.subgroup_mma_store_matrix": store,
    "gpu.subgroup_mma_compute": multiply,
    "gpu.subgroup_mma_constant_matrix": constant,
    "gpu.subgroup_mma_elementwise": elementwise,
}
