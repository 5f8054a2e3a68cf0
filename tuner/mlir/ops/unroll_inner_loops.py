"""``tuner.unroll_inner_loops``: leaves only the loops that shared memory is allocated in."""

from typing import Any

from tuner.mlir.bindings import ir
from tuner.mlir.building import index
from tuner.mlir.ops.dialect import InPlaceOp, attribute, walk
from tuner.mlir.types import is_workgroup

COPIES_LIMIT = 4096  # of one body; more would take ptxas minutes


class UnrollInnerLoopsOp(InPlaceOp, name="unroll_inner_loops"):
    """Fully unrolls every ``scf.for`` without an allocation in workgroup memory in it, innermost first.

    What is left can be pipelined: ``nvgpu.pipeline_shared_memory_copies`` takes no loop with a region in it.
    Copies beyond ``limit`` (i64, 4096 unless given) are refused. The handle (a func.func) stays valid,
    handles to the loops and to what is in them do not. Silenceable failure: bounds that are not constant,
    or a body copied more often than the limit.
    """

    def change(self, function: Any) -> str | None:
        """Changes one function; nothing is changed where one loop is refused."""
        limit = attribute(self, "limit", COPIES_LIMIT)
        loops = [loop for loop in walk(function, "scf.for") if not _allocates(loop)]
        for loop in loops:
            found = _why_not(loop, loops, limit)
            if found:
                return found
        for loop in loops:  # a walk meets what is nested first
            _unroll(loop)
        return None


def _allocates(loop: Any) -> bool:
    return any(is_workgroup(ir.MemRefType(op.results[0].type)) for op in walk(loop, "memref.alloc"))


def _why_not(loop: Any, loops: list[Any], limit: int) -> str:
    """Returns why a loop cannot be unrolled with all those around it; nothing where it can."""
    copies = 1
    for around in (loop, *_parents(loop)):
        if around in loops:
            trips = _trips(around)
            if trips is None:
                return "found a loop with variable bounds, allowed constant ones"
            copies *= len(trips)
    return f"found a loop to be copied {copies} times, allowed {limit}" if copies > limit else ""


def _parents(op: Any) -> list[Any]:
    parents = []
    parent = op.parent
    while parent is not None:
        parents.append(parent.operation)
        parent = parent.parent
    return parents


def _trips(loop: Any) -> range | None:
    bounds = [value.owner for value in list(loop.operands)[:3]]
    if any(isinstance(owner, ir.Block) or owner.name != "arith.constant" for owner in bounds):
        return None
    low, high, step = (int(ir.IntegerAttr(owner.attributes["value"]).value) for owner in bounds)
    return range(low, high, step)


def _unroll(loop: Any) -> None:
    """Puts one copy of the body before the loop for each value of its counter, and erases the loop."""
    block = loop.regions[0].blocks[0]
    *body, end = (op.operation for op in block.operations)
    counter, *carried = block.arguments
    values = list(loop.operands)[3:]
    with loop.location, ir.InsertionPoint(loop):
        for number in _trips(loop) or ():
            renamed = {counter: index(number), **dict(zip(carried, values, strict=True))}
            for op in body:
                _copy(op, renamed)
            values = [renamed.get(value, value) for value in end.operands]
    for result, value in zip(loop.results, values, strict=True):
        result.replace_all_uses_with(value)
    loop.erase()


def _copy(op: Any, renamed: dict[Any, Any]) -> None:
    """Clones an op, what is nested in it included, on values of this copy of the body."""
    clone = op.clone()

    def rename(each: Any) -> Any:
        for number, value in enumerate(each.operands):
            if value in renamed:
                each.operands[number] = renamed[value]
        return ir.WalkResult.ADVANCE

    clone.operation.walk(rename)
    renamed.update(zip(op.results, clone.operation.results, strict=True))
