"""Integer arithmetic: add, sub, mul, mad, div, rem, abs, neg, min, max, sad, popc, clz, brev, bfind."""

import operator
from collections.abc import Callable

import numpy as np

from tuner.simulator.ptx.decode.operands import U32, Operands, Step
from tuner.simulator.ptx.decode.steps import binary, binary_of, ternary, ternary_of, unary
from tuner.simulator.ptx.dtypes import TYPES, Array, PtxType

SIMPLE: dict[str, Callable[[Array, Array], Array]] = {
    "add": operator.add,
    "sub": operator.sub,
    "min": np.minimum,
    "max": np.maximum,
}


def integer_binary(operands: Operands, type_: PtxType) -> Step:
    """Decodes PTX add, sub, min and max of integers or packed pairs: returns a function that computes them.

    Sums wrap around, or saturate with .sat; .relu replaces a negative result by 0. Raises
    UnsupportedInstruction for .sat of another type than s32.
    """
    name = operands.instruction.parts[0]
    function = SIMPLE[name]
    if operands.modifiers.take("sat"):
        if type_.name != "s32" or name not in ("add", "sub"):
            raise operands.unsupported(".sat")
        return binary(operands, type_, lambda a, b: _saturated(function(a.astype("i8"), b.astype("i8"))))
    if operands.modifiers.take("relu"):
        return binary(operands, type_, lambda a, b: np.maximum(function(a, b), type_.dtype.type(0)))
    return binary(operands, type_, function)


def _saturated(values: Array) -> Array:
    limits = np.iinfo(np.int32)
    return np.clip(values, limits.min, limits.max).astype(np.int32)


def integer_unary(operands: Operands, type_: PtxType) -> Step:
    """Decodes PTX abs and neg of integers: returns a function that computes them.

    Both leave the most negative number unchanged.
    """
    function = {"abs": np.abs, "neg": np.negative}[operands.instruction.parts[0]]
    return unary(operands, type_, function)


def multiply(operands: Operands, type_: PtxType) -> Step:
    """Decodes PTX mul.lo, mul.hi and mul.wide of integers: returns a function that computes the product.

    .lo keeps the lower half of the product, .hi the upper half, .wide the whole product in twice the width.
    """
    part = operands.modifiers.need(("lo", "hi", "wide"), "the part of the product")
    if part == "wide":
        wide = _twice(operands, type_)
        return binary_of(
            operands, wide, (type_, type_), lambda a, b: a.astype(wide.dtype) * b.astype(wide.dtype)
        )
    if part == "hi":
        return binary(operands, type_, lambda a, b: high_product(a, b, type_))
    return binary(operands, type_, operator.mul)


def multiply_add(operands: Operands, type_: PtxType) -> Step:
    """Decodes PTX mad.lo, mad.hi and mad.wide of integers: returns a function that computes a * b + c.

    .lo keeps the lower half of the product, .hi the upper half, .wide the whole product; then c is added, and
    the sum wraps around.
    """
    part = operands.modifiers.need(("lo", "hi", "wide"), "the part of the product")
    if part == "wide":
        wide = _twice(operands, type_)
        return ternary_of(
            operands,
            wide,
            (type_, type_, wide),
            lambda a, b, c: a.astype(wide.dtype) * b.astype(wide.dtype) + c,
        )
    if part == "hi":
        return ternary(operands, type_, lambda a, b, c: high_product(a, b, type_) + c)
    return ternary(operands, type_, lambda a, b, c: a * b + c)


def _twice(operands: Operands, type_: PtxType) -> PtxType:
    """Returns the integer type of twice the width and the same signedness."""
    name = f"{type_.name[0]}{2 * type_.bits}"
    if name not in TYPES:
        raise operands.unsupported(f".wide of .{type_.name}")
    return TYPES[name]


def high_product(a: Array, b: Array, type_: PtxType) -> Array:
    """Returns the upper half of the full product a * b, elementwise, for integer arrays of ``type_``."""
    if type_.bits < 64:
        wide = TYPES[f"{type_.name[0]}{2 * type_.bits}"].dtype
        found: Array = ((a.astype(wide) * b.astype(wide)) >> type_.bits).astype(type_.dtype)
        return found
    high = _high_unsigned(a.view(np.uint64), b.view(np.uint64))
    if type_.is_signed:  # two's complement: a negative factor is read as a value that is 2^64 too large
        high = high - np.where(a < 0, b.view(np.uint64), 0) - np.where(b < 0, a.view(np.uint64), 0)
    return high.view(type_.dtype)


def _high_unsigned(a: Array, b: Array) -> Array:
    """Returns the upper 64 bits of a product: Knuth's algorithm M with 32-bit digits (TAOCP 4.3.1)."""
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    a_high, a_low, b_high, b_low = a >> half, a & low, b >> half, b & low
    middle = a_high * b_low + (a_low * b_low >> half)
    middle_low = a_low * b_high + (middle & low)
    found: Array = a_high * b_high + (middle >> half) + (middle_low >> half)
    return found


def divide(operands: Operands, type_: PtxType) -> Step:
    """Decodes PTX ``div`` and ``rem`` of integers: returns a function that computes them.

    Quotients are truncated towards zero. Division by zero raises nothing: div gives all ones, as on devices,
    and rem gives the dividend.
    """
    is_rest = operands.instruction.parts[0] == "rem"
    ones = np.array(-1).astype(type_.dtype)

    def divided(a: Array, b: Array) -> Array:
        rest = np.fmod(a, b)
        if is_rest:
            return np.where(b == 0, a, rest)
        return np.where(b == 0, ones, (a - rest) // b)

    return binary(operands, type_, divided)


def sum_of_differences(operands: Operands) -> Step:
    """Decodes PTX ``sad``: returns a function that computes c + |a - b| per lane."""
    type_ = operands.modifiers.type()
    return ternary(operands, type_, lambda a, b, c: c + np.where(a < b, b - a, a - b))


def bit_operations(operands: Operands) -> Step:
    """Decodes PTX popc, clz, brev and bfind: returns a function that counts, reverses or finds bits.

    popc counts ones, clz counts leading zeros, brev reverses the bits. bfind gives the position of the
    highest bit that differs from the sign, or, with .shiftamt, the left shift that moves this bit to the top;
    0xFFFFFFFF where there is none.
    """
    name, type_ = operands.instruction.parts[0], operands.modifiers.type()
    is_shift = name == "bfind" and operands.modifiers.take("shiftamt") is not None
    operands.need(2)
    write = operands.destination(0, type_ if name == "brev" else U32)
    read = operands.source(1, type_)

    def counted(values: Array) -> Array:
        if name == "bfind":
            return _found(values, type_, is_shift)
        bits = _bits(values, type_)
        if name == "brev":
            return _packed(bits[:, ::-1], type_)
        if name == "popc":
            return np.asarray(bits.sum(axis=1, dtype=np.uint32))
        return np.where(bits.any(axis=1), bits[:, ::-1].argmax(axis=1), type_.bits).astype(np.uint32)

    return lambda resident: write(resident, counted(read(resident)))


def _found(values: Array, type_: PtxType, is_shift: bool) -> Array:
    """Returns the position of the highest non-sign bit; all ones where there is none. PTX ISA, "bfind"."""
    if type_.is_signed:
        values = np.where(values < 0, ~values, values)
    bits = _bits(values, type_)
    position = type_.bits - 1 - bits[:, ::-1].argmax(axis=1)
    position = type_.bits - 1 - position if is_shift else position
    return np.where(bits.any(axis=1), position, 0xFFFFFFFF).astype(np.uint32)


def _bits(values: Array, type_: PtxType) -> Array:
    """Returns the bits of each value as [value, bit], lowest bit first."""
    raw = np.ascontiguousarray(values).view(np.uint8).reshape(len(values), type_.bytes)
    return np.unpackbits(raw, axis=1, bitorder="little")


def _packed(bits: Array, type_: PtxType) -> Array:
    packed = np.packbits(np.ascontiguousarray(bits), axis=1, bitorder="little")
    return np.ascontiguousarray(packed).view(type_.dtype).ravel()
