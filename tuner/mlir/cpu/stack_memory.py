"""Memory of a function's ``memref.alloca`` ops: allocated once per call, or freed after each iteration.

By MLIR's semantics an ``alloca`` in a loop of scf or affine lives for one iteration, but the lowering of
these loops drops that: LLVM then takes more of the stack in each iteration, until the thread has none left.
Lowerings of vectors create such ops: a ``vector.transfer_read`` of rank 2 gets one.
https://mlir.llvm.org/docs/Traits/#automaticallocationscope
"""

from collections.abc import Iterator

from tuner.mlir.bindings import Block, Op, Value, ir
from tuner.mlir.ir.building import create, value
from tuner.mlir.ir.memrefs import memref_bytes
from tuner.mlir.ir.reading import attributes_of, walk

ALLOCA = "memref.alloca"
# Ops whose bodies end the life of what is allocated in them.
SCOPES = ("scf.for", "scf.parallel", "scf.forall", "affine.for", "affine.parallel", "memref.alloca_scope")
LOOPS = (*SCOPES[:-1], "scf.while")
# Ops through which memory may move out: all in them is run by the thread that runs the op.
PASSABLE = (
    *SCOPES,
    *("scf.while", "scf.if", "scf.index_switch", "scf.execute_region", "scf.reduce", "affine.if"),
)
VIEWS = (
    *("memref.cast", "memref.subview", "memref.reinterpret_cast", "memref.view", "memref.transpose"),
    *("memref.collapse_shape", "memref.expand_shape", "memref.memory_space_cast", "vector.type_cast"),
    *("memref.extract_strided_metadata", "arith.select"),
)
# Ops by which a value reaches another iteration or another function.
HAND_OVER = (
    *("scf.yield", "scf.condition", "affine.yield", "memref.alloca_scope.return", "cf.br", "cf.cond_br"),
    *("cf.switch", "scf.for", "scf.while", "affine.for", "func.call", "func.return"),
    "memref.extract_aligned_pointer_as_index",
)
# Threads of other programs may have stacks of 1 or 2 MiB, as Java's and Rust's; here they have 8 MiB.
STACK_LIMIT_BYTES = 512 << 10


def bound_stacks(module: ir.Module, limit_bytes: int = STACK_LIMIT_BYTES) -> None:
    """Moves or frees the memory of ``memref.alloca`` ops, in place, so that loops do not use up the stack.

    An alloca of static size moves to the start of its function, or of the innermost region around it that
    memory cannot leave (of an op that is not PASSABLE). Around one of dynamic size, each iteration of the
    innermost loop gives the stack back. Left as they are: allocas whose address may reach another iteration,
    by ``scf.while`` or by branches, and dynamic ones in loops of ``cf`` branches. Where those of static size
    at a function's start need more than ``limit_bytes``, the largest become memory of the heap, freed at
    each return.

        scf.for %i = %c0 to %c8 step %c1 {
          %row = memref.alloca() : memref<vector<16xf32>>
      becomes
        %row = memref.alloca() : memref<vector<16xf32>>
        scf.for %i = %c0 to %c8 step %c1 {
    """
    for op in module.body.operations:
        if op.operation.name == "func.func" and op.operation.regions[0].blocks:
            _bound_stack(op.operation, limit_bytes)


def _bound_stack(function: Op, limit_bytes: int) -> None:
    released: list[Block] = []
    for alloca in walk(function, ALLOCA):
        if _may_move(alloca):
            home = _outermost_block(alloca)
            if alloca.block != home:
                alloca.move_before(next(iter(home.operations)).operation)
        elif alloca.operands:
            block = _iteration(alloca)
            if block is not None and block not in released:
                released.append(block)
    for block in released:
        _release_after_iteration(block)
    _use_heap(function, limit_bytes)


def _may_move(alloca: Op) -> bool:
    """Returns whether all iterations may use one buffer of an alloca.

    That is so if its size is static and no iteration keeps its address for a later one.
    """
    if alloca.operands or not alloca.results[0].type.has_static_shape:
        return False
    return _lives_for_one_iteration(alloca)


def _lives_for_one_iteration(alloca: Op) -> bool:
    """Returns whether no later iteration can use the memory: by the loop's semantics, or by all its uses."""
    for op in _around(alloca):
        if op.name in SCOPES:
            return True
        if op.name == "scf.while" or any(len(region.blocks) > 1 for region in op.regions):
            return not _is_handed_over(alloca.results[0])
    return True


def _around(op: Op) -> Iterator[Op]:
    """Yields the ops around an op, the innermost first, up to the first that memory cannot leave."""
    while op.parent is not None:
        op = op.parent.operation
        yield op
        if op.name not in PASSABLE:
            return


def _is_handed_over(buffer: Value) -> bool:
    for use in buffer.uses:
        user = use.owner.operation
        if user.name in HAND_OVER or (user.name == "memref.store" and user.operands[0] == buffer):
            return True
        if user.name in VIEWS and any(map(_is_handed_over, user.results)):
            return True
    return False


def _outermost_block(alloca: Op) -> Block:
    """Returns the first block of the region around an alloca that memory cannot leave."""
    inner = alloca
    for op in _around(alloca):
        if op.name not in PASSABLE:
            break
        inner = op
    region = inner.block.region
    return region.blocks[0]


def _iteration(alloca: Op) -> Block | None:
    """Returns the body of the innermost loop in which an alloca lives for one iteration; None without one."""
    inner = alloca
    for op in _around(alloca):
        is_loop = op.name in LOOPS and len(inner.block.region.blocks) == 1
        if is_loop and (op.name in SCOPES or not _is_handed_over(alloca.results[0])):
            return inner.block
        inner = op
    return None


def _release_after_iteration(block: Block) -> None:
    first = block.operations[0]
    last = list(block.operations)[-1]
    pointer = ir.Type.parse("!llvm.ptr")
    with ir.InsertionPoint(first), first.location:
        saved = value("llvm.intr.stacksave", pointer)
    with ir.InsertionPoint(last), last.location:
        create("llvm.intr.stackrestore", [], [saved])


def _use_heap(function: Op, limit_bytes: int) -> None:
    """Replaces static allocas of a function's first block by heap memory, which is freed at each return.

    The largest come first, until those that are left need at most ``limit_bytes``.
    """
    first = function.regions[0].blocks[0]
    static = [op.operation for op in first.operations if op.operation.name == ALLOCA and not op.operands]
    by_size = sorted(static, key=_bytes, reverse=True)
    excess = sum(map(_bytes, by_size)) - limit_bytes
    for alloca in by_size:
        if excess <= 0:
            return
        excess -= _bytes(alloca)
        _allocate_on_heap(function, alloca)


def _bytes(alloca: Op) -> int:
    return memref_bytes(alloca.results[0].type)


def _allocate_on_heap(function: Op, alloca: Op) -> None:
    type_ = alloca.results[0].type
    attributes = attributes_of(alloca)
    with ir.InsertionPoint(alloca), alloca.location:
        memory = value("memref.alloc", type_, **attributes)
    alloca.results[0].replace_all_uses_with(memory)
    alloca.erase()
    for end in walk(function, "func.return"):
        with ir.InsertionPoint(end), end.location:
            create("memref.dealloc", [], [memory])
