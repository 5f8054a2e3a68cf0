"""The transform op ``tuner.unroll_inner_loops``."""

from tuner.core.errors import Refusal
from tuner.mlir.bindings import Op, Value, WalkResult, ir
from tuner.mlir.dialect import InPlaceOp, attribute
from tuner.mlir.ir.building import index
from tuner.mlir.ir.memrefs import is_workgroup
from tuner.mlir.ir.reading import constant_of, ops_in, parents_of, replace_results, walk, walk_ops

COPIES_LIMIT = 4096  # copies of one body; more would take ptxas minutes


class UnrollInnerLoopsOp(InPlaceOp, name="unroll_inner_loops"):
    """``tuner.unroll_inner_loops``: fully unrolls all loops except those in which shared memory is allocated.

    Takes a function with ``scf.for`` nests. Unrolls every loop whose body allocates no workgroup memory,
    innermost loops first; the remaining loops can be pipelined: ``nvgpu.pipeline_shared_memory_copies``
    accepts no loop with a region in it.

        %sums = scf.for %i = %c0 to %c4 step %c2 iter_args(%sum = %before, ...) -> (f32, f32) {
          %x = memref.load %tile[%i] : memref<4xf32, #gpu.address_space<workgroup>>
          %new = arith.addf %sum, %x : f32
      becomes
        %i = arith.constant 0 : index
        %x = memref.load %tile[%i] : memref<4xf32, #gpu.address_space<workgroup>>
        %new = arith.addf %before, %x : f32
        %i_2 = arith.constant 2 : index
        %x_2 = memref.load %tile[%i_2] : memref<4xf32, #gpu.address_space<workgroup>>
        %new_2 = arith.addf %new, %x_2 : f32

    Attribute ``limit`` (i64, default 4096): the maximum of copies of one body. The handle (a func.func)
    stays valid, handles to the loops and to their ops do not. Silenceable failure, with nothing changed:
    bounds that are not constant, or a body copied more often than the limit.
    """

    def change(self, function: Op) -> Refusal | None:
        limit = attribute(self, "limit", COPIES_LIMIT)
        loops = [
            loop
            for loop in walk(function, "scf.for")
            if not any(is_workgroup(ir.MemRefType(op.results[0].type)) for op in walk(loop, "memref.alloc"))
        ]
        for loop in loops:
            refusal = _why_not(loop, loops, limit)
            if refusal is not None:
                return refusal
        for loop in loops:  # in post-order: inner loops first
            _unroll(loop)
        return None


def _why_not(loop: Op, loops: list[Op], limit: int) -> Refusal | None:
    copies = 1
    for around in (loop, *parents_of(loop)):
        if around in loops:
            trips = _trips(around)
            if trips is None:
                return Refusal("the loop's bounds are not constant")
            copies *= len(trips)
    if copies > limit:
        return Refusal(f"found a loop to be copied {copies} times, allowed {limit}")
    return None


def _trips(loop: Op) -> range | None:
    low, high, step = map(constant_of, list(loop.operands)[:3])
    if low is None or high is None or step is None:
        return None
    return range(low, high, step)


def _unroll(loop: Op) -> None:
    block = loop.regions[0].blocks[0]
    *body, end = ops_in(block)
    counter, *carried = block.arguments
    values = list(loop.operands)[3:]
    with loop.location, ir.InsertionPoint(loop):
        for number in _trips(loop) or ():
            renamed = {counter: index(number), **dict(zip(carried, values, strict=True))}
            for op in body:
                _copy(op, renamed)
            values = [renamed.get(value, value) for value in end.operands]
    replace_results(loop, values)
    loop.erase()


def _copy(op: Op, renamed: dict[Value, Value]) -> None:
    """Clones an op with its regions; ``renamed`` maps values of the body to values of the current copy."""
    clone = op.clone()

    def rename(op: Op) -> WalkResult:
        for operand_index, value in enumerate(op.operands):
            if value in renamed:
                op.operands[operand_index] = renamed[value]
        return WalkResult.ADVANCE

    walk_ops(clone, rename)
    renamed.update(zip(op.results, clone.operation.results, strict=True))
