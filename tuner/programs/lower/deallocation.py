"""Frees the memory that a program on memrefs allocates and leaves to us.

Takes a module on memrefs; gives it with ``memref.dealloc`` at the end of each buffer's life. Upstream's
deallocation pipeline does that for an entry that frees nothing and has only ops whose effects upstream knows;
it also copies each returned argument, since the caller frees results. All others, and those where upstream
would ask for addresses at run time, are done by ``last_use.py``.

    %0 = memref.alloc() : memref<4xf32>
    memref.copy %a, %0 : memref<4xf32> to memref<4xf32>
    return
  becomes
    %0 = memref.alloc() : memref<4xf32>
    memref.copy %a, %0 : memref<4xf32> to memref<4xf32>
    memref.dealloc %0 : memref<4xf32>
    return
"""

from tuner.mlir.bindings import Op, ir
from tuner.mlir.effects.buffer_roots import is_buffer
from tuner.mlir.effects.region_dataflow import last_of
from tuner.mlir.pipeline import run_passes
from tuner.mlir.rewrite.module_copy import copy_of
from tuner.mlir.rewrite.walking import walk, walk_where
from tuner.programs.lower.entry import function_named
from tuner.programs.lower.last_use import free_after_last_use

DEALLOCATE = (
    "builtin.module(func.func(buffer-loop-hoisting),buffer-deallocation-pipeline,"
    "convert-bufferization-to-memref,canonicalize,cse)"
)
# Ops of the GPU dialect whose effects upstream knows.
KNOWN = frozenset(
    f"gpu.{name}"
    for name in (*("launch", "terminator", "thread_id", "block_id", "block_dim", "grid_dim", "global_id"),)
)
BY_ADDRESS = "memref.extract_aligned_pointer_as_index"  # how it asks at run time whose memory something is


def deallocate(module: ir.Module) -> bool:
    """Adds deallocations in place; tells whether none of them depends on addresses at run time."""
    run_passes(module, DEALLOCATE)
    return not walk(module, BY_ADDRESS)


def free_memory(module: ir.Module, name: str) -> ir.Module:
    """Returns the module with frees of what the function of that name allocates and leaves to us.

    What it returns counts: a returned argument may become a copy, which the caller may free.
    Raises CandidateError(COMPILE) where it cannot be decided who frees.
    """
    function = function_named(module, name)
    if _is_for_upstream(function):
        freed = copy_of(module)
        if deallocate(freed):
            return freed
    free_after_last_use(function)
    return module


def _is_for_upstream(function: Op) -> bool:
    """Tells whether a function frees nothing itself, and has only ops whose effects upstream knows."""
    returned = [each for each in last_of(function.regions[0].blocks[0]).operands if is_buffer(each.type)]
    has_memory = bool(returned or walk(function, "memref.alloc"))
    return has_memory and not walk_where(function, _is_unknown_to_upstream)


def _is_unknown_to_upstream(op: Op) -> bool:
    return op.name == "memref.dealloc" or (op.name.startswith(("gpu.", "gpux.")) and op.name not in KNOWN)
