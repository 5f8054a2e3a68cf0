"""Asynchronous copies to shared memory, executed immediately, so that waits have no effect."""

import numpy as np

from tuner.mlir.bindings import Op, ir
from tuner.programs.interpret import accesses
from tuner.programs.interpret.buffer_view import with_trailing_axes
from tuner.programs.interpret.frame import LaneFrame, Step
from tuner.programs.interpret.scope import Decode, FunctionScope, where_of


def copy(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``nvgpu.device_async_copy``: a synchronous copy by each lane.

    A lane copies ``dstElements`` elements; elements beyond ``srcElements`` become zero. A step is a function
    that executes ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA values to frame
    slots. The step raises CandidateError(RUN) for an access out of bounds.
    """
    sizes = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    to, *rest = scope.slots(op.operands)
    there, (source, *rest) = rest[: sizes[1]], rest[sizes[1] :]
    here, given = rest[: sizes[3]], rest[sizes[3] :]
    count = ir.IntegerAttr(op.attributes["dstElements"]).value
    kind, where = scope.element(op, op.operands[0].type), where_of(op)
    steps = np.arange(count)

    def step(frame: LaneFrame) -> None:
        one, other = (
            frame.values[view].at(frame.take(indices), kind.size_bytes)
            for view, indices in ((source, here), (to, there))
        )
        wanted = (
            np.ones((1, 1, count), bool)
            if not given
            else steps < with_trailing_axes(frame.values[given[0]], 1)
        )
        offsets = steps * kind.size_bytes
        found = accesses.load_where(
            frame, where, frame.values[source], kind, with_trailing_axes(one, 1) + offsets, wanted
        )
        everything = np.ones((1, 1, count), bool)
        accesses.store_where(
            frame, where, frame.values[to], kind, with_trailing_axes(other, 1) + offsets, everything, found
        )

    return step


DECODERS: dict[str, Decode] = {"nvgpu.device_async_copy": copy}
