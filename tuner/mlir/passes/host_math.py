"""Math on the host for which ``convert-math-to-libm`` finds no function of the C library, as formulas."""

from typing import Any

from tuner.mlir.bindings import ir
from tuner.mlir.ops.dialect import walk
from tuner.mlir.passes.device_math import TESTS, compute
from tuner.mlir.passes.terms import Term

MISSING = ("math.rsqrt", "math.fpowi", *TESTS)


def lower_missing_math(module: ir.Module) -> None:
    """Rewrites host code; powers of float64 stay, which no formula has."""
    for op in [op for name in MISSING for op in walk(module, name)]:
        if op.name != "math.fpowi" or str(Term(op.operands[0]).element) != "f64":
            compute(op)
    for op in walk(module, "math.copysign"):  # formulas have made some
        _copy_sign(op)


def _copy_sign(op: Any) -> None:
    with op.location, ir.InsertionPoint(op):
        size, sign = (Term(operand).bits() for operand in op.operands)
        highest = 1 << (size.element.width - 1)
        bits = (size & (highest - 1)) | (sign & -highest)
        op.results[0].replace_all_uses_with(bits.converted("bitcast", Term(op.operands[0]).element).value)
    op.erase()
