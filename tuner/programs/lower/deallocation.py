"""Frees the memory that a program on memrefs allocates and does not free itself.

Takes a module on memrefs; inserts ``memref.dealloc`` at the end of each buffer's lifetime. Upstream's
deallocation pipeline does so for an entry function that frees nothing and has only operations whose effects
upstream knows; the pipeline also copies each returned argument, since the caller frees results. All other
functions, functions for which upstream would compare addresses at run time, and functions in which something
else than a memref holds the address of an allocation, are handled by ``last_use.py``.

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
from tuner.mlir.effects.address_flow import is_buffer
from tuner.mlir.effects.aliases import aliases_of
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
# Operations of the GPU dialect whose effects upstream knows.
KNOWN = frozenset(
    f"gpu.{name}"
    for name in (*("launch", "terminator", "thread_id", "block_id", "block_dim", "grid_dim", "global_id"),)
)
# in upstream's output: ownership is decided by address at run time
BY_ADDRESS = "memref.extract_aligned_pointer_as_index"


def deallocate(module: ir.Module) -> bool:
    """Adds deallocations to a module on memrefs in place, by MLIR's buffer-deallocation pipeline.

    Returns False if a deallocation compares addresses at run time. Raises CandidateError(COMPILE) where a
    pass fails.
    """
    run_passes(module, DEALLOCATE)
    return not walk(module, BY_ADDRESS)


def free_memory(module: ir.Module, name: str) -> ir.Module:
    """Returns the module with deallocations of what its function ``name`` allocates and does not free.

    Only the returned module is valid; it may be ``module`` itself. A returned argument may become a copy,
    which the caller may free. Raises CandidateError(COMPILE) where it is undecidable who frees a buffer.
    """
    function = function_named(module, name)
    if _is_for_upstream(function):
        freed = copy_of(module)
        if deallocate(freed):
            return freed
    free_after_last_use(function)
    return module


def _is_for_upstream(function: Op) -> bool:
    """True if a function frees nothing itself and has only operations whose effects upstream knows."""
    returned = [each for each in last_of(function.regions[0].blocks[0]).operands if is_buffer(each.type)]
    has_memory = bool(returned or walk(function, "memref.alloc"))
    if not has_memory or walk_where(function, _is_unknown_to_upstream):
        return False
    return not any(map(_travels_unseen, walk(function, "memref.alloc")))


def _travels_unseen(allocation: Op) -> bool:
    """True if something else than memrefs may hold the memory's address: upstream follows memrefs only."""
    aliases = aliases_of(allocation.results[0])
    return aliases.is_kept or not all(is_buffer(each.type) for each in aliases.values)


def _is_unknown_to_upstream(op: Op) -> bool:
    return op.name == "memref.dealloc" or (op.name.startswith(("gpu.", "gpux.")) and op.name not in KNOWN)
