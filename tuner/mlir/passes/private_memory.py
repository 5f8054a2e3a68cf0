"""Gives a thread's own temporaries a place in its local memory: ``memref.alloc`` in a kernel is no heap's.

The place is one for the whole kernel, also of a temporary that each turn of a loop makes anew. Run after
outlining.
"""

from typing import Any

from tuner.errors import CandidateError, Stage
from tuner.mlir.bindings import ir
from tuner.mlir.ops.dialect import walk
from tuner.mlir.passes.buffer_roots import VIEWS, is_buffer, roots_of
from tuner.mlir.symbols import name_of
from tuner.mlir.types import is_workgroup, memref_bytes

# Of all temporaries of a thread. Local memory is device memory: more than this is a buffer of the program.
LIMIT_BYTES = 4096
SEGMENTS = "operandSegmentSizes"


def use_private_memory(module: ir.Module) -> int:
    """Rewrites every kernel; returns how many allocations it replaced.

    Raises CandidateError: RESOURCES above the limit, COMPILE for sizes that are not static, for memory that
    one turn of a loop hands on to the next, and for a kernel that frees what it did not allocate.
    """
    return sum(_rewrite(function) for function in walk(module, "gpu.func"))


def _rewrite(function: Any) -> int:
    name = name_of(function)
    allocations = [op for op in walk(function, "memref.alloc") if not is_workgroup(op.results[0].type)]
    _require_small(name, allocations)
    for op in allocations:
        if _is_in_loop(op):
            _require_own_turn(name, op.results[0])
    _drop_deallocations(name, function, allocations)
    start = function.regions[0].blocks[0].operations[0]
    for op in allocations:
        _replace(op, start)
    return len(allocations)


def _require_small(kernel: str, allocations: list[Any]) -> None:
    for op in allocations:
        if not op.results[0].type.has_static_shape:
            raise _refused(kernel, f"found {op.results[0].type} allocated by each thread", "a static shape")
    total = sum(memref_bytes(op.results[0].type) for op in allocations)
    if total > LIMIT_BYTES:
        found = f"found {total} bytes allocated by each thread"
        raise _refused(kernel, found, f"{LIMIT_BYTES}", Stage.RESOURCES)


def _is_in_loop(op: Any) -> bool:
    parent = op.parent
    while parent.name != "gpu.func":
        if parent.name != "scf.if":
            return True
        parent = parent.operation.parent
    return False


def _require_own_turn(kernel: str, buffer: Any) -> None:
    for use in buffer.uses:
        op = use.owner.operation
        if op.name in VIEWS:
            for view in filter(_is_buffer, op.results):
                _require_own_turn(kernel, view)
        elif op.name == "scf.yield" or any(map(_is_buffer, op.results)):
            found = f"found memory of one turn of a loop that {op.name} hands on"
            raise _refused(kernel, found, "loads, stores and views")


def _is_buffer(result: Any) -> bool:
    return is_buffer(result.type)


def _drop_deallocations(kernel: str, function: Any, allocations: list[Any]) -> None:
    own = {op.results[0] for op in allocations}
    for op in walk(function, "memref.dealloc"):
        if is_workgroup(op.operands[0].type):
            continue  # dropped with the allocation
        if not own.issuperset(roots_of(op.operands[0])):
            raise _refused(kernel, "found memref.dealloc of another's memory", "what it allocated itself")
        op.erase()


def _replace(op: Any, start: Any) -> None:
    kept = {key: op.attributes[key] for key in ("alignment",) if key in op.attributes}
    kept[SEGMENTS] = ir.DenseI32ArrayAttr.get([0, 0])
    with op.location, ir.InsertionPoint(start):
        place = ir.Operation.create("memref.alloca", results=[op.results[0].type], attributes=kept)
    op.results[0].replace_all_uses_with(place.results[0])
    op.erase()


def _refused(kernel: str, found: str, allowed: str, stage: Stage = Stage.COMPILE) -> CandidateError:
    return CandidateError(stage, f"kernel {kernel}: {found}, allowed {allowed}")
