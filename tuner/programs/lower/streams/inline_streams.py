"""Inlines functions that take streams or work on streams, on which upstream's inliner crashes.

Takes a module without recursion, with GPUX (``gpux_ops.py``); removes calls of functions that contain GPUX.
Upstream asks the dialect of each operation whether the operation may be inlined, and GPUX is not registered.
Rejected: such a function with several blocks.

    func.func private @work(%s: !gpux.StreamType, %a: memref<4xf32>) {
      "gpux.dealloc"(%s, %a) : (!gpux.StreamType, memref<4xf32>) -> ()
      return
    }
    call @work(%t, %d) : (!gpux.StreamType, memref<4xf32>) -> ()
  becomes
    "gpux.dealloc"(%t, %d) : (!gpux.StreamType, memref<4xf32>) -> ()
"""

from collections.abc import Mapping

from tuner.mlir.bindings import Op, ir
from tuner.mlir.rewrite.inlining import inline_call
from tuner.mlir.rewrite.located_error import unsupported
from tuner.mlir.rewrite.symbols import callee_of, name_of
from tuner.mlir.rewrite.walking import parents_of, walk
from tuner.programs.lower.streams.gpux_ops import uses_gpux


def inline_stream_functions(module: ir.Module) -> None:
    """Inlines all calls of functions that contain GPUX or take its streams, in place; the functions stay.

    GPUX is Intel's MLIR dialect of GPU work on named streams. Raises CandidateError(COMPILE) for such a
    function with several blocks.
    """
    functions = [op for op in walk(module, "func.func") if list(op.regions[0].blocks)]
    holders = {name_of(function): function for function in functions if uses_gpux(function)}
    while (call := _next_call(module, holders)) is not None:
        *_, caller = parents_of(call)
        _inline(call, holders[callee_of(call)])
        holders[name_of(caller)] = caller


def _next_call(module: ir.Module, holders: Mapping[str, Op]) -> Op | None:
    """Returns a call of a function that contains GPUX; None if there is none."""
    return next((call for call in walk(module, "func.call") if callee_of(call) in holders), None)


def _inline(call: Op, function: Op) -> None:
    """Inlines one call. Raises CandidateError(COMPILE) for a function with several blocks."""
    if len(function.regions[0].blocks) != 1:
        raise unsupported(call, f"@{name_of(function)} with several blocks and streams", "one block")
    inline_call(call, function)
