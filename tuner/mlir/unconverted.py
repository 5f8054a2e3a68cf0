"""Finds what upstream's lowering of a host program skips without a word, or mistakes for something else."""

from typing import Any

from tuner.errors import CandidateError, Stage
from tuner.mlir.bindings import ir
from tuner.mlir.ops.dialect import walk
from tuner.mlir.types import is_row_major
from tuner.mlir.unfit import place_of

ALLOWED = ("llvm.", "gpu.binary", "builtin.module")
LAUNCH = "gpu.launch_func"  # becomes calls when it is translated, if its operands are LLVM's
# What stays when something else was not converted; it is named only where there is nothing else.
CAST = "builtin.unrealized_conversion_cast"
REASONS = {
    "gpu.memcpy": "copies of contiguous memory, with a token",
    "gpu.alloc": "allocations of device memory, with a token",
    "gpu.dealloc": "frees with a token",
    "gpu.memset": "fills of 16 or 32 bits, with a token",
    "memref.copy": "copies that a pass made loops or gpu.memcpy of",
}


def reject_copies_of_views(module: ir.Module) -> None:
    """Raises CandidateError(COMPILE) for a copy or a fill of a view with an offset or with gaps.

    ``gpu-to-llvm`` takes the buffer behind the view, and its first bytes.
    """
    for op in [*walk(module, "gpu.memcpy"), *walk(module, "gpu.memset")]:
        for operand in op.operands:
            if isinstance(operand.type, ir.MemRefType) and not _is_from_its_start(operand.type):
                found = f"found {op.name} of {operand.type}, allowed contiguous memory without an offset"
                raise CandidateError(Stage.COMPILE, f"host program: {found} ({place_of(op)})")


def reject_what_was_not_converted(module: ir.Module) -> None:
    """Raises CandidateError(COMPILE) for the first operation that is not LLVM dialect, and where it is from.

    Allowed beside are kernels as ``gpu.binary``, and ``gpu.launch_func`` of LLVM's types.
    """
    left: list[Any] = []

    def visit(op: Any) -> Any:
        if not op.name.startswith(ALLOWED) and not _is_translatable(op):
            left.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    named = [op for op in left if op.name != CAST] or left
    if named:
        allowed = REASONS.get(named[0].name, "what lowers to LLVM")
        found = f"found {named[0].name}, allowed {allowed}"
        raise CandidateError(Stage.COMPILE, f"host program: {found} ({place_of(named[0])})")


def _is_translatable(op: Any) -> bool:
    if op.name != LAUNCH or op.results:
        return False
    return all(isinstance(operand.type, ir.IntegerType) or _is_llvm(operand) for operand in op.operands)


def _is_from_its_start(memref: Any) -> bool:
    if is_row_major(memref):
        return True
    strides, offset = memref.get_strides_and_offset()
    plain = ir.MemRefType.get(memref.shape, memref.element_type, memory_space=memref.memory_space)
    return bool(offset == 0 and strides == plain.get_strides_and_offset()[0])


def _is_llvm(operand: Any) -> bool:
    return isinstance(operand.type, ir.FloatType) or str(operand.type).startswith(("!llvm.", "vector<"))
