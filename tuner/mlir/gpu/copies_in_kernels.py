"""Expands ``memref.copy`` in kernels to loops; copies by a whole block are distributed over its threads.

Takes outlined kernels. ``transform.structured.promote`` puts a copy between two barriers, which every thread
of the block reaches with the same operands: each thread then copies every n-th element, for n threads. A copy
without the barriers, or of memory that depends on the thread, is done by each thread alone.

    gpu.barrier
    memref.copy %a, %t : memref<16x16xf32> to memref<16x16xf32, #gpu.address_space<workgroup>>
    gpu.barrier
  becomes, between the barriers
    scf.for %i = %thread to %c256 step %threads {
      %x = memref.load %a[%row, %column] : memref<16x16xf32>
      memref.store %x, %t[%row, %column] : memref<16x16xf32, #gpu.address_space<workgroup>>
    }
"""

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.effects.buffer_roots import VIEWS
from tuner.mlir.gpu.warp_ids import linear_thread, threads_of_block
from tuner.mlir.rewrite import parallel_loops
from tuner.mlir.rewrite.building import create, index, size_of, value
from tuner.mlir.rewrite.memref_copies import replace_copy
from tuner.mlir.rewrite.type_sizes import is_workgroup
from tuner.mlir.rewrite.walking import walk

BARRIER, LOOP = "gpu.barrier", "scf.for"
PURE = ("arith.", "affine.", "index.")
# Ops whose result is uniform in a block where their operands are.
UNIFORM = VIEWS | {
    *("gpu.block_id", "gpu.block_dim", "gpu.grid_dim", "gpu.dynamic_shared_memory"),
    *("memref.alloc", "memref.get_global", "memref.dim"),
}


def expand_copies(module: ir.Module) -> int:
    """Replaces each ``memref.copy`` in kernels by loops; returns how many copies a block's threads share.

    The threads of a block share a copy of shared memory between two barriers, with operands that are the same
    in all threads: each thread copies a part. Any other copy is done whole by each thread.
    """
    shared = 0
    for function in walk(module, "gpu.func"):
        for op in walk(function, "memref.copy"):
            is_shared = _is_of_block(op)
            shared += is_shared
            replace_copy(op, _share_out if is_shared else parallel_loops.copy)
    return shared


def _share_out(source: Value, target: Value) -> None:
    sizes = [size_of(target, number) for number in range(target.type.rank)]
    total = index(1)
    for size in sizes:
        total = value("arith.muli", total.type, total, size)
    loop = ir.Operation.create(LOOP, operands=[linear_thread(), total, threads_of_block()], regions=1)
    body = loop.regions[0].blocks.append(total.type, arg_locs=[loop.location])
    with loop.location, ir.InsertionPoint(body):
        indices = parallel_loops.delinearized(body.arguments[0], sizes)
        parallel_loops.store(parallel_loops.load(source, indices), target, indices)
        create("scf.yield")


def _is_of_block(op: Op) -> bool:
    """Returns whether all threads of a block execute one copy together."""
    ops = [each.operation for each in op.block.operations]
    place = ops.index(op)
    is_between = _first_effect(ops[:place][::-1]) and _first_effect(ops[place + 1 :])
    if not is_between or not any(is_workgroup(each.type) for each in op.operands):
        return False
    return all(_is_uniform(each) for each in op.operands)


def _first_effect(ops: list[Op]) -> bool:
    """Returns whether the first op with a side effect is a barrier."""
    for op in ops:
        if op.name not in UNIFORM and not op.name.startswith(PURE):
            return bool(op.name == BARRIER)
    return False


def _is_uniform(root: Value) -> bool:
    """Returns whether a value is known to be the same in all threads of a block."""
    open_values, seen = [root], set[Value]()
    while open_values:
        each = open_values.pop()
        if each in seen:
            continue
        seen.add(each)
        if isinstance(each.owner, ir.Block):
            holder = each.owner.owner.operation
            if holder.name == LOOP and each == each.owner.arguments[0]:
                open_values += list(holder.operands)[:3]  # the loop's bounds and step
            elif holder.name != "gpu.func":
                return False
            continue
        owner = each.owner.operation
        if owner.name not in UNIFORM and not owner.name.startswith(PURE):
            return False
        open_values += list(owner.operands)
    return True
