"""Memory that each thread of a kernel allocates for itself: local memory, allocated once."""

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.effects.aliases import VIEWS, is_buffer, roots_of
from tuner.mlir.effects.launches import SEGMENTS
from tuner.mlir.ir.memrefs import is_workgroup, memref_bytes
from tuner.mlir.ir.reading import location_of, name_of, walk

LIMIT_BYTES = 512 * 1024  # local memory per thread: CUDA C programming guide, compute capabilities


def use_private_memory(module: ir.Module) -> int:
    """Moves memory that a kernel's threads allocate to local memory, in place; returns how many allocations.

    Each allocation becomes a ``memref.alloca`` at the start of the kernel: in a loop it would take more of
    the stack in each iteration. Raises CandidateError: RESOURCES above LIMIT_BYTES per thread; COMPILE for
    sizes that are not static, memory that leaves the loop iteration that allocates it, and a free of other
    memory.

        scf.for %i = %c0 to %n step %c1 {
          %t = memref.alloc() : memref<4xf32>
          memref.dealloc %t : memref<4xf32>
      becomes
        %t = memref.alloca() : memref<4xf32>
        scf.for %i = %c0 to %n step %c1 {
    """
    return sum(map(_move_to_local_memory, walk(module, "gpu.func")))


def _move_to_local_memory(function: Op) -> int:
    name = name_of(function)
    block = function.regions[0].blocks[0]
    every = [*walk(function, "memref.alloc"), *walk(function, "memref.alloca")]
    allocations = [op for op in every if not is_workgroup(op.results[0].type)]
    _require_small(name, allocations)
    for op in allocations:
        if _is_in_loop(op):
            _require_no_escape_from_iteration(name, op.results[0])
    _drop_own_deallocations(name, function, allocations)
    for op in allocations:
        attributes = {SEGMENTS: ir.DenseI32ArrayAttr.get([0, 0])}
        if "alignment" in op.attributes:
            attributes["alignment"] = op.attributes["alignment"]
        with op.location, ir.InsertionPoint.at_block_begin(block):
            alloca = ir.Operation.create("memref.alloca", results=[op.results[0].type], attributes=attributes)
        op.results[0].replace_all_uses_with(alloca.results[0])
    for op in allocations:  # last: the memory of another one may have been created before it
        op.erase()
    return len(allocations)


def _require_small(kernel: str, allocations: list[Op]) -> None:
    for op in allocations:
        if not op.results[0].type.has_static_shape:
            found = f"found {op.results[0].type} allocated by each thread"
            raise _unsupported(op, kernel, found, "a static shape")
    total = sum(memref_bytes(op.results[0].type) for op in allocations)
    if total > LIMIT_BYTES:
        found = f"found {total} bytes allocated by each thread"
        raise _unsupported(allocations[0], kernel, found, f"{LIMIT_BYTES}", Stage.RESOURCES)


def _is_in_loop(op: Op) -> bool:
    parent = op.parent
    while parent.name != "gpu.func":
        if parent.name != "scf.if":
            return True
        parent = parent.operation.parent
    return False


def _require_no_escape_from_iteration(kernel: str, buffer: Value) -> None:
    for use in buffer.uses:
        op = use.owner.operation
        views = [result for result in op.results if is_buffer(result.type)]
        if op.name in VIEWS:
            for view in views:
                _require_no_escape_from_iteration(kernel, view)
        elif op.name in ("scf.yield", "scf.condition") or views:
            found = f"found memory of one iteration of a loop that {op.name} forwards"
            raise _unsupported(op, kernel, found, "loads, stores and views")


def _drop_own_deallocations(kernel: str, function: Op, allocations: list[Op]) -> None:
    own = {op.results[0] for op in allocations}
    for op in walk(function, "memref.dealloc"):
        if is_workgroup(op.operands[0].type):
            continue  # of shared memory, which other passes declare
        if not own.issuperset(roots_of(op.operands[0])):
            found = "found memref.dealloc of other memory"
            raise _unsupported(op, kernel, found, "what it allocated itself")
        op.erase()


def _unsupported(
    op: Op, kernel: str, found: str, allowed: str, stage: Stage = Stage.COMPILE
) -> CandidateError:
    return CandidateError(stage, f"kernel {kernel}: {found}, allowed {allowed} ({location_of(op)})")
