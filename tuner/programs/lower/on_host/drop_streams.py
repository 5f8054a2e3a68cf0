"""Removes the streams of GPUX, so that a program runs on the host in program order.

Takes GPUX (``streams/gpux_ops.py``); produces synchronous GPU dialect. Program order is one of the orders
that streams allow. Rejected, as on a device: operations of the ``gpux`` prefix that are not valid GPUX.

    %s = "gpux.create_stream"() : () -> !gpux.StreamType
    "gpux.memcpy"(%s, %b, %a) : (!gpux.StreamType, memref<4xf32>, memref<4xf32>) -> ()
    "gpux.wait"(%s) : (!gpux.StreamType) -> ()
    "gpux.destroy_stream"(%s) : (!gpux.StreamType) -> ()
  becomes
    gpu.memcpy %b, %a : memref<4xf32>, memref<4xf32>
"""

from tuner.mlir.bindings import Op, ir
from tuner.mlir.rewrite.building import create, value
from tuner.programs.lower.streams.gpux_ops import CREATE, PREFIX, WORK, checked_gpux_ops, gpu_attributes
from tuner.programs.lower.streams.gpux_tokens import lower_tokens
from tuner.programs.lower.streams.stream_calls import POINTER
from tuner.programs.lower.streams.stream_values import make_pointers, selected_streams


def drop_streams(function: Op) -> None:
    """Converts a function's GPUX operations to synchronous GPU dialect in place, in program order.

    GPUX is Intel's MLIR dialect of GPU work on named streams. The context then rejects unregistered dialects.
    Raises CandidateError(COMPILE) for invalid GPUX.
    """
    lower_tokens(function)
    ops = checked_gpux_ops(function)
    for op in ops:
        if op.name in WORK:
            _to_gpu(op)
    _forget_choices(function, ops)
    for op in reversed(ops):
        op.erase()
    ir.Context.current.allow_unregistered_dialects = False


def _forget_choices(function: Op, ops: list[Op]) -> None:
    """Replaces streams that control flow selects by null pointers."""
    chosen = selected_streams(function)
    for op in ops if chosen else []:
        if op.name == CREATE:
            with op.location, ir.InsertionPoint(op):
                null = value("llvm.mlir.zero", ir.Type.parse(POINTER))
            op.results[0].replace_all_uses_with(null)
    make_pointers(chosen)


def _to_gpu(op: Op) -> None:
    with op.location, ir.InsertionPoint(op):
        types = [result.type for result in op.results]
        name = op.name.replace(PREFIX, "gpu.")
        new = create(name, types, list(op.operands)[1:], **gpu_attributes(op, tokens=0))
    for old, replacement in zip(op.results, new.results, strict=True):
        old.replace_all_uses_with(replacement)
