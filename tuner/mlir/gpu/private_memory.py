"""Puts the temporaries of threads in local memory: ``memref.alloc`` in a kernel becomes ``memref.alloca``.

Takes outlined kernels; gives one ``memref.alloca`` at the start of the kernel per allocation that is not
shared memory, also for an allocation in a loop, and no deallocations. A ``memref.alloca`` in a loop, which
would take more of the stack in each iteration, moves there too. Not handled: dynamic sizes, memory that an
iteration yields to the next, more than LIMIT_BYTES; all three are errors.

    scf.for %i = %c0 to %n step %c1 {
      %t = memref.alloc() : memref<4xf32>
      memref.dealloc %t : memref<4xf32>
  becomes
    %t = memref.alloca() : memref<4xf32>
    scf.for %i = %c0 to %n step %c1 {
"""

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Block, Op, Value, ir
from tuner.mlir.effects.address_flow import is_buffer
from tuner.mlir.effects.buffer_roots import VIEWS, roots_of
from tuner.mlir.rewrite.located_error import location_of
from tuner.mlir.rewrite.symbols import name_of
from tuner.mlir.rewrite.type_sizes import is_workgroup, memref_bytes
from tuner.mlir.rewrite.walking import walk

LIMIT_BYTES = 512 * 1024  # local memory per thread: CUDA C programming guide, compute capabilities
SEGMENTS = "operandSegmentSizes"


def use_private_memory(module: ir.Module) -> int:
    """Moves what each thread of a kernel allocates to local memory, in place; returns how many allocations.

    Each ``memref.alloc`` or ``memref.alloca`` that is not shared memory becomes a ``memref.alloca`` at the
    start of the kernel; deallocations are dropped. Raises CandidateError: RESOURCES above LIMIT_BYTES (512
    KiB) per thread; COMPILE for sizes that are not static, for memory allocated in a loop that ``scf.yield``
    or an op with a memref result, other than a view, forwards (``arith.select``), and for a kernel that frees
    memory which it did not allocate.
    """
    return sum(_rewrite(function) for function in walk(module, "gpu.func"))


def _rewrite(function: Op) -> int:
    name = name_of(function)
    block = function.regions[0].blocks[0]
    allocations = [*_own(function, "memref.alloc"), *_own(function, "memref.alloca")]
    _require_small(name, allocations)
    for op in allocations:
        if _is_in_loop(op):
            _require_no_escape_from_iteration(name, op.results[0])
    _drop_deallocations(name, function, allocations)
    for op in allocations:
        _move_to_start(op, block)
    for op in allocations:
        op.erase()
    return len(allocations)


def _own(function: Op, kind: str) -> list[Op]:
    return [op for op in walk(function, kind) if not is_workgroup(op.results[0].type)]


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
        if op.name in VIEWS:
            for view in filter(_is_buffer, op.results):
                _require_no_escape_from_iteration(kernel, view)
        elif op.name == "scf.yield" or any(map(_is_buffer, op.results)):
            found = f"found memory of one iteration of a loop that {op.name} forwards"
            raise _unsupported(op, kernel, found, "loads, stores and views")


def _is_buffer(result: Value) -> bool:
    return is_buffer(result.type)


def _drop_deallocations(kernel: str, function: Op, allocations: list[Op]) -> None:
    own = {op.results[0] for op in allocations}
    for op in walk(function, "memref.dealloc"):
        if is_workgroup(op.operands[0].type):
            continue  # dropped with the allocation
        if not own.issuperset(roots_of(op.operands[0])):
            found = "found memref.dealloc of other memory"
            raise _unsupported(op, kernel, found, "what it allocated itself")
        op.erase()


def _move_to_start(op: Op, block: Block) -> None:
    """Creates the memory at the start of the kernel, and replaces the op's uses; the op itself stays.

    The caller erases the op last, because another allocation may be created before it.
    """
    kept = {key: op.attributes[key] for key in ("alignment",) if key in op.attributes}
    kept[SEGMENTS] = ir.DenseI32ArrayAttr.get([0, 0])
    with op.location, ir.InsertionPoint.at_block_begin(block):
        alloca = ir.Operation.create("memref.alloca", results=[op.results[0].type], attributes=kept)
    op.results[0].replace_all_uses_with(alloca.results[0])


def _unsupported(
    op: Op, kernel: str, found: str, allowed: str, stage: Stage = Stage.COMPILE
) -> CandidateError:
    return CandidateError(stage, f"kernel {kernel}: {found}, allowed {allowed} ({location_of(op)})")
