"""Keeps LLVM's intrinsics of math through ``convert-gpu-to-nvvm``, which refuses them for libdevice's sake.

NVPTX selects an instruction for each of these; as ``llvm.call_intrinsic`` upstream takes no notice of them.
"""

from typing import Any

from tuner.mlir.bindings import ir
from tuner.mlir.ops.dialect import walk

PREFIX = "llvm.intr."
REFUSED = ("ceil", "copysign", "exp2", "fabs", "floor", "round", "roundeven", "sqrt")
FAST_MATH = "fastmathFlags"
SEGMENTS = "operandSegmentSizes"


def keep_intrinsics(module: ir.Module) -> int:
    """Replaces each such operation of a kernel; returns how many."""
    found = [
        op for holder in walk(module, "gpu.module") for name in REFUSED for op in walk(holder, PREFIX + name)
    ]
    for op in found:
        _replace(op)
    return len(found)


def _replace(op: Any) -> None:
    operands = list(op.operands)
    attributes = {
        "intrin": ir.StringAttr.get(f"llvm.{op.name.removeprefix(PREFIX)}"),
        SEGMENTS: ir.DenseI32ArrayAttr.get([len(operands), 0]),
        "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        FAST_MATH: op.attributes[FAST_MATH],
    }
    with op.location, ir.InsertionPoint(op):
        call = ir.Operation.create(
            "llvm.call_intrinsic", results=[op.results[0].type], operands=operands, attributes=attributes
        )
    op.results[0].replace_all_uses_with(call.results[0])
    op.erase()
