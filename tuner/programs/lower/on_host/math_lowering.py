"""Expands math operations on the host for which ``convert-math-to-libm`` knows no C library function.

Takes host code with math dialect; produces arith for ``math.rsqrt``, ``math.fpowi``, ``math.absi``, the
classification operations such as ``math.isnan``, and ``math.copysign``, and loops for ``arith.remf``, for
which LLVM calls a function that the JIT does not find.

    %0 = math.copysign %x, %y : f32
  becomes
    %1 = arith.bitcast %x : f32 to i32
    %2 = arith.bitcast %y : f32 to i32
    %3 = arith.andi %1, %c2147483647_i32 : i32
    %4 = arith.andi %2, %c-2147483648_i32 : i32
    %5 = arith.ori %3, %4 : i32
    %0 = arith.bitcast %5 : i32 to f32
"""

from tuner.mlir.bindings import Op, ir
from tuner.mlir.math.math_lowering import TESTS, compute
from tuner.mlir.math.op_expressions import Term
from tuner.mlir.math.remainders import expand_remainders
from tuner.mlir.rewrite.building import value
from tuner.mlir.rewrite.walking import walk

MISSING = ("math.rsqrt", "math.fpowi", *TESTS)


def lower_missing_math(module: ir.Module) -> None:
    """Expands math operations that ``convert-math-to-libm`` has no C function for to arith, in place.

    These are rsqrt, copysign, fpowi, absi and tests such as isnan; also ``arith.remf``. Raises
    CandidateError(COMPILE) for ``arith.remf`` of vectors.
    """
    expand_remainders(module.operation)
    for op in [op for name in MISSING for op in walk(module, name)]:
        compute(op)
    for op in walk(module, "math.absi"):
        _positive(op)
    for op in walk(module, "math.copysign"):  # some are created by the expansions above
        _copy_sign(op)


def _positive(op: Op) -> None:
    """Replaces an absolute value of integers by the larger of x and -x; the least integer stays."""
    with op.location, ir.InsertionPoint(op):
        x = Term(op.operands[0])
        negative = x.constant(0) - x
        larger = value("arith.maxsi", op.operands[0].type, x.value, negative.value)
        op.results[0].replace_all_uses_with(larger)
    op.erase()


def _copy_sign(op: Op) -> None:
    with op.location, ir.InsertionPoint(op):
        size, sign = (Term(operand).bits() for operand in op.operands)
        highest = 1 << (size.element.width - 1)
        bits = (size & (highest - 1)) | (sign & -highest)
        op.results[0].replace_all_uses_with(bits.converted("bitcast", Term(op.operands[0]).element).value)
    op.erase()
