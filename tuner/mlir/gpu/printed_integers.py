"""Widens narrow integers that ``gpu.printf`` prints, because ``vprintf`` reads at least an int per argument.

Upstream widens only floats, and leaves the upper bytes of an i8 undefined.

    gpu.printf "%d", %x : i8
  becomes
    %0 = arith.extsi %x : i8 to i32
    gpu.printf "%d", %0 : i32
"""

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.rewrite.building import value
from tuner.mlir.rewrite.walking import walk

INT_BITS = 32


def widen_printed_integers(module: ir.Module) -> None:
    """Extends the integers below 32 bits that ``gpu.printf`` prints to 32 bits, in place.

    i1 is extended by zeros, any other type by the sign.
    """
    for op in walk(module, "gpu.printf"):
        for number, operand in enumerate(list(op.operands)):
            if isinstance(operand.type, ir.IntegerType) and operand.type.width < INT_BITS:
                op.operands[number] = _widened(op, operand)


def _widened(op: Op, operand: Value) -> Value:
    extend = "arith.extui" if operand.type.width == 1 else "arith.extsi"
    with op.location, ir.InsertionPoint(op):
        return value(extend, ir.IntegerType.get_signless(INT_BITS), operand)
