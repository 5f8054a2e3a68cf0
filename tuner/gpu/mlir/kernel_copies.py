"""Copies of memrefs in kernels as loops, which the threads of a block share between two barriers."""

from tuner.gpu.mlir.thread_ids import linear_thread, threads_of_block
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.effects.aliases import VIEWS
from tuner.mlir.ir import building
from tuner.mlir.ir.building import create, index, size_of, value
from tuner.mlir.ir.memrefs import is_workgroup, replace_copy
from tuner.mlir.ir.reading import ops_in, walk

BARRIER = "gpu.barrier"
LOOP = "scf.for"
PURE = ("arith.", "affine.", "index.")
# Ops whose result is the same for all threads of a block where their operands are; allocations: shared ones.
UNIFORM = VIEWS | {
    *("gpu.block_id", "gpu.block_dim", "gpu.grid_dim", "gpu.dynamic_shared_memory"),
    *("memref.alloc", "memref.get_global", "memref.dim"),
}


def expand_copies(module: ir.Module) -> int:
    """Replaces each ``memref.copy`` in kernels by loops; returns how many copies a block's threads share.

    ``transform.structured.promote`` puts a copy of shared memory between two barriers: each of n threads then
    copies every n-th element. Any other copy is done whole by each thread.
        gpu.barrier
        memref.copy %a, %t : memref<16x16xf32> to memref<16x16xf32, #gpu.address_space<workgroup>>
        gpu.barrier
      becomes, between the barriers
        scf.for %i = %thread to %c256 step %threads {
          %x = memref.load %a[%row, %column] : memref<16x16xf32>
          memref.store %x, %t[%row, %column] : memref<16x16xf32, #gpu.address_space<workgroup>>
        }
    """
    shared = 0
    for function in walk(module, "gpu.func"):
        for op in walk(function, "memref.copy"):
            is_shared = _is_of_block(op)
            shared += is_shared
            replace_copy(op, _share_out if is_shared else building.copy)
    return shared


def _share_out(source: Value, target: Value) -> None:
    sizes = [size_of(target, number) for number in range(target.type.rank)]
    total = index(1)
    for size in sizes:
        total = value("arith.muli", total.type, total, size)
    loop = ir.Operation.create(LOOP, operands=[linear_thread(), total, threads_of_block()], regions=1)
    body = loop.regions[0].blocks.append(total.type, arg_locs=[loop.location])
    with loop.location, ir.InsertionPoint(body):
        indices = building.delinearized(body.arguments[0], sizes)
        building.store(building.load(source, indices), target, indices)
        create("scf.yield")


def _is_of_block(op: Op) -> bool:
    ops = ops_in(op.block)
    position = ops.index(op)
    is_between = _meets_barrier(ops[:position][::-1]) and _meets_barrier(ops[position + 1 :])
    if not is_between or not any(is_workgroup(operand.type) for operand in op.operands):
        return False
    return all(map(_is_uniform, op.operands))


def _meets_barrier(ops: list[Op]) -> bool:
    for op in ops:
        if op.name not in UNIFORM and not op.name.startswith(PURE):
            return bool(op.name == BARRIER)
    return False


def _is_uniform(root: Value) -> bool:
    open_values = [root]
    seen = set[Value]()
    while open_values:
        open_value = open_values.pop()
        if open_value in seen:
            continue
        seen.add(open_value)
        if isinstance(open_value.owner, ir.Block):
            holder = open_value.owner.owner.operation
            if holder.name == LOOP and open_value == open_value.owner.arguments[0]:
                open_values += list(holder.operands)[:3]  # the loop's bounds and step
            elif holder.name != "gpu.func":
                return False
            continue
        owner = open_value.owner.operation
        is_private = owner.name == "memref.alloc" and not is_workgroup(open_value.type)
        if is_private or (owner.name not in UNIFORM and not owner.name.startswith(PURE)):
            return False
        open_values += list(owner.operands)
    return True
