"""Reads a user's whole program: MLIR text with one entry function, converted to memrefs that are freed.

Takes MLIR on tensors or memrefs, GPUX included; produces a module whose only function is the entry: calls are
inlined, tensors are memrefs, results included, and memory that the program does not free itself is freed.
Matmuls, other linalg operations, loops and launches are unchanged.
"""

from dataclasses import dataclass

from tuner.mlir.bindings import Op, ir
from tuner.mlir.gpu.inline_device_functions import inline_device_functions
from tuner.mlir.gpu.launch_memory import declare_launch_memory
from tuner.mlir.pipeline import run_passes
from tuner.mlir.rewrite.memory_spaces import name_memory_spaces
from tuner.programs.lower.bufferize import bufferized, has_tensors
from tuner.programs.lower.deallocation import free_memory
from tuner.programs.lower.entry import entry_of, function_named, hide_others
from tuner.programs.lower.indirect_indices import assert_indirect_indices
from tuner.programs.lower.payload_checks import (
    WHOLE_LIMIT,
    reject_calls,
    require_default_memory,
    require_few_operations,
    require_names,
    require_resources,
)
from tuner.programs.lower.runtime_calls import replace_runtime_calls
from tuner.programs.lower.streams.async_regions import inline_async_regions
from tuner.programs.lower.streams.gpux import take_stream_from_caller
from tuner.programs.lower.streams.gpux_ops import parse_with_gpux
from tuner.programs.lower.streams.inline_streams import inline_stream_functions

UNUSED = "builtin.module(symbol-dce)"
INLINE = "builtin.module(inline,symbol-dce)"


@dataclass(frozen=True)
class ProgramPayload:
    """A user's program: an MLIR module in the current context, with a function ``entry`` on memrefs."""

    module: ir.Module
    entry: str

    @property
    def function(self) -> Op:
        """Returns the ``func.func`` of the program's entry."""
        return function_named(self.module, self.entry)


def read_program(text: str, entry: str | None = None, *, limit: int | None = WHOLE_LIMIT) -> ProgramPayload:
    """Parses a user's program, inlines its calls, converts tensors to memrefs, and adds deallocations.

    Args:
        text: MLIR text, which is parsed in the current context.
        entry: the function to run; may be None if the module has one public function, or one named ``main``.
        limit: how many linalg and elementwise operations it may have; None: any number.

    Raises CandidateError: at stage BIND for text that is no valid program, at stage COMPILE for unsupported
    programs.
    """
    module = parse_with_gpux(text, "payload")
    if limit is not None:
        require_few_operations(module)
        require_few_operations(module, limit, is_whole=True)
    require_resources(module, text)
    name_memory_spaces(module)
    inline_device_functions(module)
    declare_launch_memory(module)
    name = entry_of(module, entry)
    take_stream_from_caller(function_named(module, name))
    hide_others(module, name)
    replace_runtime_calls(module)
    run_passes(module, UNUSED)
    reject_calls(module)
    inline_stream_functions(module)
    run_passes(module, UNUSED)
    run_passes(module, INLINE)
    inline_async_regions(function_named(module, name))
    require_names(module)
    require_default_memory(function_named(module, name))
    if has_tensors(module):
        assert_indirect_indices(function_named(module, name))
        module = bufferized(module, name)
    else:
        module = free_memory(module, name)
    return ProgramPayload(module, name)
