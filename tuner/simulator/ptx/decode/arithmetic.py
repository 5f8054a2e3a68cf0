"""Arithmetic instructions whose type selects the integer or the floating-point decoder."""

from collections.abc import Callable

from tuner.simulator.ptx.decode import floats, integers
from tuner.simulator.ptx.decode.operands import Operands, Step
from tuner.simulator.ptx.dtypes import PtxType

Typed = Callable[[Operands, PtxType], Step]

INTEGERS: dict[str, Typed] = {
    **dict.fromkeys(("add", "sub", "min", "max"), integers.integer_binary),
    **dict.fromkeys(("div", "rem"), integers.divide),
    **dict.fromkeys(("abs", "neg"), integers.integer_unary),
    "mul": integers.multiply,
    "mad": integers.multiply_add,
}
FLOATS: dict[str, Typed] = {
    **dict.fromkeys(("add", "sub", "mul"), floats.float_binary),
    **dict.fromkeys(("min", "max"), floats.float_extreme),
    **dict.fromkeys(("abs", "neg"), floats.float_sign),
    "div": floats.float_divide,
}


def arithmetic(operands: Operands) -> Step:
    """Decodes PTX add, sub, mul, mad, div, rem, min, max, abs and neg: returns a function that computes them.

    The last modifier, such as ``s32`` or ``f16x2``, selects integer or floating-point arithmetic. Raises
    UnsupportedInstruction for a type or a modifier that is not simulated, such as rem of floats.
    """
    name = operands.instruction.parts[0]
    if floats.is_float_type(operands):
        if name == "mad":
            return floats.float_fma(operands)
        if name not in FLOATS:
            raise operands.unsupported("it for floats")
        return FLOATS[name](operands, operands.modifiers.type(*floats.FLOATS))
    return INTEGERS[name](operands, operands.modifiers.type())


DECODERS: dict[str, Callable[[Operands], Step]] = {
    **dict.fromkeys(INTEGERS, arithmetic),
    **dict.fromkeys(floats.APPROXIMATE, floats.approximate),
    **dict.fromkeys(("popc", "clz", "brev", "bfind"), integers.bit_operations),
    "sad": integers.sum_of_differences,
    "fma": floats.float_fma,
    "copysign": floats.copy_sign,
}
