"""Hides LLVM's math intrinsics from ``convert-gpu-to-nvvm``, which rejects them in favour of libdevice.

Takes kernels between ``convert-math-to-llvm`` and ``convert-gpu-to-nvvm``; gives ``llvm.call_intrinsic``,
which ``convert-gpu-to-nvvm`` does not look at, and which LLVM translates to the same intrinsic. NVPTX has an
instruction for each of these. Intrinsics that ``convert-gpu-to-nvvm`` accepts stay.

    %y = llvm.intr.sqrt(%x) : (f32) -> f32
  becomes
    %y = llvm.call_intrinsic "llvm.sqrt"(%x) : (f32) -> f32
"""

from tuner.mlir.bindings import Op, ir
from tuner.mlir.rewrite.walking import walk

PREFIX = "llvm.intr."
# Intrinsics that convert-gpu-to-nvvm rejects.
REJECTED = ("ceil", "copysign", "exp2", "fabs", "floor", "round", "roundeven", "sqrt")
# Ops of arith for which convert-gpu-to-nvvm calls libdevice.
OF_ARITH = {"arith.maxnumf": "maxnum", "arith.minnumf": "minnum"}
FAST_MATH = "fastmathFlags"
SEGMENTS = "operandSegmentSizes"


def call_intrinsics_directly(module: ir.Module) -> int:
    """Replaces math intrinsics that ``convert-gpu-to-nvvm`` rejects by ``llvm.call_intrinsic``, in place.

    Returns how many. LLVM translates both forms to the same intrinsic. ``arith.maxnumf`` and
    ``arith.minnumf``, for which the pass would call libdevice, are replaced too.
    """
    kept = {**{PREFIX + name: name for name in REJECTED}, **OF_ARITH}
    ops = [op for holder in walk(module, "gpu.module") for op in walk(holder, *kept)]
    for op in ops:
        _replace(op, kept[op.name])
    return len(ops)


def _replace(op: Op, name: str) -> None:
    operands = list(op.operands)
    attributes = {
        "intrin": ir.StringAttr.get(f"llvm.{name}"),
        SEGMENTS: ir.DenseI32ArrayAttr.get([len(operands), 0]),
        "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
    }
    if FAST_MATH in op.attributes:
        attributes[FAST_MATH] = op.attributes[FAST_MATH]
    with op.location, ir.InsertionPoint(op):
        call = ir.Operation.create(
            "llvm.call_intrinsic", results=[op.results[0].type], operands=operands, attributes=attributes
        )
    op.results[0].replace_all_uses_with(call.results[0])
    op.erase()
