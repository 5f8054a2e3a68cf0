"""Rejects operations that upstream's lowering of a host program skips silently, or lowers wrongly.

``reject_copies_of_views`` runs before ``gpu-to-llvm``, ``reject_what_was_not_converted`` after all
conversions. Nothing is rewritten.
"""

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Op, Type, Value, WalkResult, ir
from tuner.mlir.rewrite.located_error import location_of
from tuner.mlir.rewrite.type_sizes import is_row_major
from tuner.mlir.rewrite.walking import walk, walk_ops

ALLOWED = ("llvm.", "gpu.binary", "builtin.module")
LAUNCH = "gpu.launch_func"  # translated to calls in LLVM IR, if its operands have LLVM types
# Remains when something else was not converted; named only where nothing else remains.
CAST = "builtin.unrealized_conversion_cast"
REASONS = {
    "gpu.memcpy": "copies of contiguous memory, with a token",
    "gpu.alloc": "allocations of device memory, with a token",
    "gpu.dealloc": "frees with a token",
    "gpu.memset": "fills of 16 or 32 bits, with a token",
    "memref.copy": "copies that a pass made loops or gpu.memcpy of",
}


def reject_copies_of_views(module: ir.Module) -> None:
    """Raises CandidateError(COMPILE) for a device copy or fill of a memref with an offset or with gaps.

    For such a view ``gpu-to-llvm`` copies the first bytes of the underlying buffer.
    """
    for op in [*walk(module, "gpu.memcpy"), *walk(module, "gpu.memset")]:
        for operand in op.operands:
            if isinstance(operand.type, ir.MemRefType) and not _is_from_its_start(operand.type):
                found = f"found {op.name} of {operand.type}, allowed contiguous memory without an offset"
                raise CandidateError(Stage.COMPILE, f"host program: {found} ({location_of(op)})")


def reject_what_was_not_converted(module: ir.Module) -> None:
    """Raises CandidateError(COMPILE) for the first operation that is not LLVM dialect, with its location.

    Kernels as ``gpu.binary`` and ``gpu.launch_func`` on LLVM types are allowed too.
    """
    left: list[Op] = []

    def visit(op: Op) -> WalkResult:
        if not op.name.startswith(ALLOWED) and not _is_translatable(op):
            left.append(op)
        return ir.WalkResult.ADVANCE

    walk_ops(module, visit, is_pre_order=True)
    named = [op for op in left if op.name != CAST] or left
    if named:
        allowed = REASONS.get(named[0].name, "what lowers to LLVM")
        found = f"found {named[0].name}, allowed {allowed}"
        raise CandidateError(Stage.COMPILE, f"host program: {found} ({location_of(named[0])})")


def _is_translatable(op: Op) -> bool:
    if op.name != LAUNCH or op.results:
        return False
    return all(isinstance(operand.type, ir.IntegerType) or _is_llvm(operand) for operand in op.operands)


def _is_from_its_start(memref: Type) -> bool:
    if is_row_major(memref):
        return True
    strides, offset = memref.get_strides_and_offset()
    plain = ir.MemRefType.get(memref.shape, memref.element_type, memory_space=memref.memory_space)
    return bool(offset == 0 and strides == plain.get_strides_and_offset()[0])


def _is_llvm(operand: Value) -> bool:
    return isinstance(operand.type, ir.FloatType) or str(operand.type).startswith(("!llvm.", "vector<"))
