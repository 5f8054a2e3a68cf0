"""Decoders of floating-point arithmetic, and the choice between integer and float decoders by type.

Approximate PTX instructions are computed in float64, then rounded to the type. Sums and products of 16-bit
types are computed in float32 and rounded to 16 bits: with 2p + 2 bits of precision double rounding is
innocuous (Figueroa, "When is double rounding innocuous?", 1995).
"""

import operator
from collections.abc import Callable

import numpy as np

from tuner.gpu.ptxsim.instructions import integers
from tuner.gpu.ptxsim.instructions.operands import Operands, Step, binary, ternary, unary
from tuner.gpu.ptxsim.ptx.dtypes import TYPES, Array, PtxType, fma

FLOAT_TYPES = ("f16", "bf16", "f16x2", "bf16x2", "f32", "f32x2", "f64")
DIRECTED = ("rz", "rm", "rp")
APPROXIMATE: dict[str, Callable[[Array], Array]] = {
    "ex2": np.exp2,
    "lg2": np.log2,
    "rcp": np.reciprocal,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
}
SMALLEST_NORMAL = {
    **dict.fromkeys(("f32", "f32x2", "bf16", "bf16x2"), 2.0**-126),
    **dict.fromkeys(("f16", "f16x2"), 2.0**-14),
}
Typed = Callable[[Operands, PtxType], Step]
INTEGERS: dict[str, Typed] = {
    **dict.fromkeys(("add", "sub", "min", "max"), integers.integer_binary),
    **dict.fromkeys(("div", "rem"), integers.divide),
    **dict.fromkeys(("abs", "neg"), integers.integer_unary),
    "mul": integers.multiply,
    "mad": integers.multiply_add,
}


def float_binary(operands: Operands, type_: PtxType) -> Step:
    """Decodes PTX add, sub and mul of floats of ``type_``: returns a function that rounds to nearest."""
    name = operands.instruction.parts[0]
    function = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}[name]
    finish = _rounding(operands, type_)
    start = flushing(operands, type_)
    return binary(operands, type_, lambda a, b: finish(function(start(a), start(b))))


def float_divide(operands: Operands, type_: PtxType) -> Step:
    """Decodes PTX ``div`` of floats, rounded to nearest; for .approx and .full a GPU may differ by 2 ulp."""
    operands.modifiers.take("approx", "full")
    finish = _rounding(operands, type_)
    start = flushing(operands, type_)
    return binary(operands, type_, lambda a, b: finish(start(a) / start(b)))


def float_fma(operands: Operands) -> Step:
    """Decodes PTX fma, and mad of floats: returns a function for a * b + c, rounded once."""
    type_ = operands.modifiers.type(*FLOAT_TYPES)
    start = flushing(operands, type_)
    finish = _rounding(operands, type_)
    return ternary(operands, type_, lambda a, b, c: finish(fma(start(a), start(b), start(c))))


def float_extreme(operands: Operands, type_: PtxType) -> Step:
    """Decodes PTX min and max of floats: a number wins over NaN unless .NaN is given; -0 is less than +0."""
    is_max = operands.instruction.parts[0] == "max"
    keeps_nan = operands.modifiers.take("NaN") is not None
    start = flushing(operands, type_)
    function: Callable[[Array, Array], Array]
    if is_max:
        function = np.maximum if keeps_nan else np.fmax
    elif keeps_nan:
        function = np.minimum
    else:
        function = np.fmin

    def extreme(a: Array, b: Array) -> Array:
        a = start(a)
        b = start(b)
        first = np.signbit(a) != is_max
        return np.where(a == b, np.where(first, a, b), function(a, b)).astype(type_.dtype)

    return binary(operands, type_, extreme)


def float_sign(operands: Operands, type_: PtxType) -> Step:
    """Decodes PTX ``abs`` and ``neg`` of floats, which change only the sign bit, after .ftz if given."""
    start = flushing(operands, type_)
    sign = np.array(1 << (type_.bits - 1), f"u{type_.dtype.itemsize}")
    is_abs = operands.instruction.parts[0] == "abs"

    def changed(values: Array) -> Array:
        bits = start(values).view(sign.dtype)
        signed: Array = bits & ~sign if is_abs else bits ^ sign
        return signed.view(type_.dtype)

    return unary(operands, type_, changed)


def copy_sign(operands: Operands) -> Step:
    """Decodes PTX ``copysign``: returns a function that writes the magnitude of b with the sign of a."""
    type_ = operands.modifiers.type("f32", "f64")
    return binary(operands, type_, lambda a, b: np.copysign(b, a))


def approximate(operands: Operands) -> Step:
    """Decodes PTX ex2, lg2, rcp, sqrt, rsqrt, sin, cos and tanh, computed in float64 and rounded.

    rcp and sqrt with .rn equal a device's results. Else a device may deviate in f32 by 1 ulp for rcp and 2
    ulp for ex2; by 2**-23 of the result for sqrt, 2**-22.9 for rsqrt and 2**-11 for tanh; by 2**-22 for lg2
    between 0.5 and 2, and 2**-20.5 for sin and cos near 0; of 16-bit types more. Source: PTX ISA, the
    instructions' descriptions; CUDA programming guide, exp2f.
    """
    function = APPROXIMATE[operands.instruction.parts[0]]
    type_ = operands.modifiers.type(*FLOAT_TYPES)
    operands.modifiers.take("approx")
    start = flushing(operands, type_)
    finish = _rounding(operands, type_)
    if type_.name == "f64":
        return unary(operands, type_, lambda a: finish(function(start(a))))
    return unary(operands, type_, lambda a: finish(function(start(a).astype(np.float64)).astype(np.float32)))


def _rounding(operands: Operands, type_: PtxType) -> Callable[[Array], Array]:
    """Consumes rounding mode, .sat and .relu; returns the function that applies .sat or .relu, and .ftz.

    Raises UnsupportedInstruction for a rounding mode other than .rn.
    """
    modifiers = operands.modifiers
    if (mode := modifiers.take(*DIRECTED)) is not None:
        raise operands.unsupported(f".{mode} here, only .rn")
    modifiers.take("rn")
    flush = _flush(type_) if operands.instruction.opcode.find(".ftz") >= 0 else _same
    if modifiers.take("sat"):
        return lambda x: np.nan_to_num(np.clip(flush(x), 0, 1), nan=0).astype(type_.dtype)
    if modifiers.take("relu"):
        return lambda x: np.where(np.isnan(x), x, np.maximum(flush(x), x.dtype.type(0))).astype(type_.dtype)
    return lambda x: flush(x).astype(type_.dtype, copy=False)


def flushing(operands: Operands, type_: PtxType) -> Callable[[Array], Array]:
    """Consumes .ftz; returns the function that flushes subnormal operands to zero.

    Without .ftz it returns the identity.
    """
    if operands.modifiers.take("ftz"):
        return _flush(type_)
    return _same


def _flush(type_: PtxType) -> Callable[[Array], Array]:
    least = SMALLEST_NORMAL.get(type_.name, 0.0)

    def flush(values: Array) -> Array:
        zero = np.zeros((), values.dtype)
        return np.where(np.abs(values) < least, np.copysign(zero, values), values)

    return flush


def _same(values: Array) -> Array:
    return values


FLOAT_STEPS: dict[str, Typed] = {
    **dict.fromkeys(("add", "sub", "mul"), float_binary),
    **dict.fromkeys(("min", "max"), float_extreme),
    **dict.fromkeys(("abs", "neg"), float_sign),
    "div": float_divide,
}


def arithmetic(operands: Operands) -> Step:
    """Decodes PTX add, sub, mul, mad, div, rem, min, max, abs and neg, of floats or integers by its type."""
    name = operands.instruction.parts[0]
    type_ = TYPES.get(operands.instruction.parts[-1])
    if type_ is not None and type_.is_float:
        if name == "mad":
            return float_fma(operands)
        if name not in FLOAT_STEPS:
            raise operands.unsupported("this instruction for floats")
        return FLOAT_STEPS[name](operands, operands.modifiers.type(*FLOAT_TYPES))
    return INTEGERS[name](operands, operands.modifiers.type())


DECODERS: dict[str, Callable[[Operands], Step]] = {
    **dict.fromkeys(INTEGERS, arithmetic),
    **dict.fromkeys(APPROXIMATE, approximate),
    "fma": float_fma,
    "copysign": copy_sign,
}
