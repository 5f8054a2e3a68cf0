"""Frees the memory that a program allocates and does not free: by upstream's pipeline, or after last use."""

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.effects.aliases import BRANCHES, Aliases, aliases_of, is_buffer, last_of, roots_of
from tuner.mlir.ir.building import create, dynamic_sizes, value
from tuner.mlir.ir.memrefs import copy_buffer
from tuner.mlir.ir.reading import (
    ancestor_in_block,
    copy_of,
    op_of,
    ops_in,
    parents_of,
    unsupported,
    walk,
    walk_where,
)
from tuner.mlir.passes import run_passes
from tuner.mlir.programs.entry import function_named

# Allocation -> the operation that frees its memory.
FREES = {"memref.alloc": "memref.dealloc", "gpu.alloc": "gpu.dealloc", "gpux.alloc": "gpux.dealloc"}
ALLOCATES = frozenset(FREES)
RETURN = "func.return"
ONCE = frozenset({"scf.execute_region", "memref.alloca_scope"})  # with one block
END_OF_STREAM = "gpux.destroy_stream"
DEALLOCATE = (
    "builtin.module(func.func(buffer-loop-hoisting),buffer-deallocation-pipeline,"
    "convert-bufferization-to-memref,canonicalize,cse)"
)
# Operations of the GPU dialect whose effects upstream knows.
KNOWN = frozenset(
    f"gpu.{name}"
    for name in ["launch", "terminator", "thread_id", "block_id", "block_dim", "grid_dim", "global_id"]
)
# in upstream's output: ownership is decided by address at run time
BY_ADDRESS = "memref.extract_aligned_pointer_as_index"


def free_after_last_use(function: Op) -> None:
    """Inserts deallocations, in place, after the last use of memory that a function does not free or return.

    Memory that the program frees anywhere is left to the program. Other memory is freed after the last use of
    all values that may hold its address (``tuner.mlir.effects.aliases``), or at the end of the function where
    its address is stored in memory. Work with a token uses its memory until the token is waited for. A
    function of several blocks is left unchanged.

        %0 = gpu.alloc () : memref<4xf32>
        %t = gpu.launch_func async [%s] @m::@k ... args(%0 : memref<4xf32>)
        gpu.wait [%t]
      is followed by
        gpu.dealloc %0 : memref<4xf32>

    An allocation in a branch that escapes the branch is moved before the branch. Where a result may be one of
    several allocations, the result becomes a copy. Raises CandidateError(COMPILE) for memory that escapes an
    iteration of a loop, or whose address is stored there, and for memory used on several streams of GPUX.
    """
    if len(function.regions[0].blocks) != 1:
        return
    _leave_branches(function)
    end = last_of(function.regions[0].blocks[0])
    for index, result in enumerate(list(end.operands)):
        roots = roots_of(result) if is_buffer(result.type) else ()
        unfreed = (op_of(root, *ALLOCATES) is not None and not aliases_of(root).is_freed for root in roots)
        if len(roots) > 1 and any(unfreed):
            with end.location, ir.InsertionPoint(end):
                sizes = dynamic_sizes(result)
                segments = ir.DenseI32ArrayAttr.get([len(sizes), 0])
                memory = value("memref.alloc", result.type, *sizes, operandSegmentSizes=segments)
                copy_buffer(memory, result)
                end.operands[index] = memory
    for allocation in _allocations(function):
        aliases = aliases_of(allocation.results[0])
        if not aliases.is_freed and not aliases.is_returned:
            _free(allocation, aliases)


def _allocations(function: Op) -> list[Op]:
    allocations = walk(function, *ALLOCATES)
    return [op for op in allocations if not any(parent.name == "gpu.launch" for parent in parents_of(op))]


def _leave_branches(function: Op) -> None:
    for allocation in _allocations(function):
        aliases = aliases_of(allocation.results[0])
        if aliases.is_freed:
            continue
        while _runs_once(allocation.parent.operation) and _may_be_used_outside(allocation, aliases):
            for operand in allocation.operands:
                if isinstance(operand.owner, ir.Block):
                    block = operand.owner
                else:
                    block = operand.owner.operation.block
                if block == allocation.block:
                    actual = "memory that leaves its branch, of a size that is computed there"
                    raise unsupported(allocation, actual, "sizes from outside, or memory from outside")
            allocation.move_before(allocation.parent.operation)


def _may_be_used_outside(allocation: Op, aliases: Aliases) -> bool:
    """Returns whether an address of the memory may leave the allocation's block: by its end or a store.

    False in the block of the function, which ends with func.return.
    """
    end = last_of(allocation.block)
    return end.name != RETURN and (
        aliases.is_kept or any(operand in aliases.values for operand in end.operands)
    )


def _runs_once(parent: Op) -> bool:
    """Returns whether an op around an allocation runs each of its regions at most once per run of the op."""
    has_one_block = all(len(region.blocks) == 1 for region in parent.regions)
    return parent.name in BRANCHES or (parent.name in ONCE and has_one_block)


def _free(allocation: Op, aliases: Aliases) -> None:
    unfreed = ""
    if _may_be_used_outside(allocation, aliases):
        unfreed = f"memory that leaves {allocation.parent.operation.name} and that nobody frees"
    elif any(ancestor_in_block(user, allocation.block) is None for user in aliases.users):
        unfreed = "memory that several blocks use and that nobody frees"
    if unfreed:
        raise unsupported(allocation, unfreed, "memory that is freed, or memory from outside")
    streams = list(allocation.operands)[:1] if allocation.name.startswith("gpux.") else []
    before = _after_last_use(allocation, aliases, streams)
    with allocation.location, ir.InsertionPoint(before):
        create(FREES[allocation.name], [], [*streams, allocation.results[0]])


def _after_last_use(allocation: Op, aliases: Aliases, streams: list[Value]) -> Op:
    users = set(aliases.users)
    for stream in streams:
        users |= _waits_for_streams(allocation, aliases, stream)
    ops = ops_in(allocation.block)
    holders = {ancestor_in_block(user, allocation.block) for user in users}
    last = max((index for index, op in enumerate(ops) if op in holders), default=ops.index(allocation))
    if aliases.is_kept:
        return ops[-1]
    if ops[last].name == END_OF_STREAM:
        return ops[last]
    return ops[min(last + 1, len(ops) - 1)]


def _waits_for_streams(allocation: Op, aliases: Aliases, own: Value) -> set[Op]:
    for user in aliases.users:
        if user.name.startswith("gpux.") and user.operands[0] != own:
            raise unsupported(allocation, "memory on several streams that nobody frees", "gpux.dealloc of it")
    return {
        use.owner.operation
        for use in own.uses
        if use.owner.name in ("gpux.wait", END_OF_STREAM) and use.owner.operation.block == allocation.block
    }


def deallocate(module: ir.Module) -> bool:
    """Adds deallocations to a module on memrefs, in place, by MLIR's buffer-deallocation pipeline.

    The module's entry function must free nothing, and have only operations whose effects upstream knows. A
    returned argument becomes a copy, since the caller frees results. Returns whether no deallocation compares
    addresses at run time; else ``free_after_last_use`` has to be used on the module as it was. Raises
    CandidateError(COMPILE) where a pass fails.
        %0 = memref.alloc() : memref<4xf32>
        memref.copy %a, %0 : memref<4xf32> to memref<4xf32>
      is followed by
        memref.dealloc %0 : memref<4xf32>
    """
    run_passes(module, DEALLOCATE)
    return not walk(module, BY_ADDRESS)


def free_memory(module: ir.Module, name: str) -> ir.Module:
    """Adds deallocations of memory that function ``name`` allocates and does not free; returns the module.

    Only the returned module, perhaps ``module`` itself, is valid. A returned argument may become a copy.
    Raises CandidateError(COMPILE) where it is undecidable who frees a buffer.
    """
    function = function_named(module, name)
    if _is_for_upstream(function):
        freed = copy_of(module)
        if deallocate(freed):
            return freed
    free_after_last_use(function)
    return module


def _is_for_upstream(function: Op) -> bool:
    """True if a function has buffers, frees none, and upstream knows the effects of all operations.

    It has buffers if it allocates or returns one: a returned argument needs upstream's copy, too.
    """
    returned = [
        operand for operand in last_of(function.regions[0].blocks[0]).operands if is_buffer(operand.type)
    ]
    has_memory = bool(returned or walk(function, "memref.alloc"))
    if not has_memory or walk_where(function, _is_unknown_to_upstream):
        return False
    return not any(map(_travels_unseen, walk(function, "memref.alloc")))


def _travels_unseen(allocation: Op) -> bool:
    """True if something else than memrefs may hold the memory's address: upstream follows memrefs only."""
    aliases = aliases_of(allocation.results[0])
    return aliases.is_kept or not all(is_buffer(alias.type) for alias in aliases.values)


def _is_unknown_to_upstream(op: Op) -> bool:
    return op.name == "memref.dealloc" or (op.name.startswith(("gpu.", "gpux.")) and op.name not in KNOWN)
