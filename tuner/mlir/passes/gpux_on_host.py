"""Drops the streams of GPUX, so that a program runs on the host in the order of its text."""

from typing import Any

from tuner.errors import CandidateError, Stage
from tuner.mlir.bindings import ir
from tuner.mlir.building import create
from tuner.mlir.passes.buffer_accesses import inside
from tuner.mlir.passes.gpux import CREATE, DESTROY, KNOWN, PREFIX, WAIT, launch_segments
from tuner.mlir.passes.launch_operands import SEGMENTS


def drop_streams(function: Any) -> None:
    """Makes GPU dialect of GPUX, in place. Raises CandidateError(COMPILE) for what is no GPUX."""
    ops = [op for op in inside(function) if op.name.startswith(PREFIX)]
    for op in ops:
        if op.name not in KNOWN:
            allowed = ", ".join(sorted(KNOWN))
            raise CandidateError(Stage.COMPILE, f"payload: found {op.name}, allowed {allowed}")
        if op.name not in (CREATE, DESTROY, WAIT):
            _to_gpu(op)
    for op in reversed(ops):
        op.erase()
    ir.Context.current.allow_unregistered_dialects = False


def _to_gpu(op: Any) -> None:
    attributes = {name: op.attributes[name] for name in ("kernel",) if name in op.attributes}
    operands = list(op.operands)[1:]
    if op.name == "gpux.alloc":
        attributes[SEGMENTS] = ir.DenseI32ArrayAttr.get([0, *_sizes(op)])
    elif op.name == "gpux.launch_func":
        attributes[SEGMENTS] = launch_segments(0, _sizes(op))
    with op.location, ir.InsertionPoint(op):
        kinds = [result.type for result in op.results]
        new = create(op.name.replace(PREFIX, "gpu."), kinds, operands, **attributes)
    for old, value in zip(op.results, new.results, strict=True):
        old.replace_all_uses_with(value)


def _sizes(op: Any) -> list[int]:
    """Returns how many operands each segment has, less tokens and stream."""
    for name in (SEGMENTS, "operand_segment_sizes"):
        if name in op.attributes:
            return list(ir.DenseI32ArrayAttr(op.attributes[name]))[2:]
    return [len(op.operands) - 1, 0]
