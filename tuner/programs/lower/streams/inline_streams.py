"""Inlines functions that take streams or do work on them, which upstream's inliner cannot: it crashes.

Takes a module without recursion, with GPUX (``gpux_ops.py``); gives it without calls of functions that hold
GPUX. Upstream asks the dialect of each op whether it may be inlined, and GPUX is not registered. Rejected:
such a function with several blocks.

    func.func private @work(%s: !gpux.StreamType, %a: memref<4xf32>) {
      "gpux.dealloc"(%s, %a) : (!gpux.StreamType, memref<4xf32>) -> ()
      return
    }
    call @work(%t, %d) : (!gpux.StreamType, memref<4xf32>) -> ()
  becomes
    "gpux.dealloc"(%t, %d) : (!gpux.StreamType, memref<4xf32>) -> ()
"""

from tuner.mlir.bindings import Op, ir
from tuner.mlir.rewrite.inlining import inline_call
from tuner.mlir.rewrite.located_error import unsupported
from tuner.mlir.rewrite.symbols import callee_of, name_of
from tuner.mlir.rewrite.walking import walk
from tuner.programs.lower.streams.gpux_ops import uses_gpux


def inline_stream_functions(module: ir.Module) -> None:
    """Inlines in place; the functions stay. Raises CandidateError(COMPILE) for one with several blocks."""
    while (found := _next_call(module)) is not None:
        _inline(*found)


def _next_call(module: ir.Module) -> tuple[Op, Op] | None:
    """Returns a call and its function, if any function with GPUX is called."""
    functions = {name_of(op): op for op in walk(module, "func.func") if list(op.regions[0].blocks)}
    holders = {name: function for name, function in functions.items() if uses_gpux(function)}
    for call in walk(module, "func.call"):
        name = callee_of(call)
        if name in holders:
            return call, holders[name]
    return None


def _inline(call: Op, function: Op) -> None:
    """Inlines one call. Raises CandidateError(COMPILE)."""
    if len(function.regions[0].blocks) != 1:
        raise unsupported(call, f"@{name_of(function)} with several blocks and streams", "one block")
    inline_call(call, function)
