"""Decoders of integer instructions: arithmetic, logic, shifts, bit fields and bit counts."""

import operator
from collections.abc import Callable

import numpy as np

from tuner.gpu.ptxsim.instructions.operands import (
    U32,
    Operands,
    Step,
    binary,
    binary_of,
    ternary,
    ternary_of,
    unary,
)
from tuner.gpu.ptxsim.ptx.dtypes import TYPES, Array, PtxType

LOGIC: dict[str, Callable[[Array, Array], Array]] = {
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
}
LOGIC_TYPES = ("pred", "b16", "b32", "b64")
SIMPLE: dict[str, Callable[[Array, Array], Array]] = {
    "add": operator.add,
    "sub": operator.sub,
    "min": np.minimum,
    "max": np.maximum,
}


def logic(operands: Operands) -> Step:
    """Decodes PTX and, or and xor, of predicates or bits: returns a function that computes the result."""
    return binary(operands, operands.modifiers.type(*LOGIC_TYPES), LOGIC[operands.instruction.parts[0]])


def negation(operands: Operands) -> Step:
    """Decodes PTX not and cnot: returns a function that inverts all bits; cnot: 1 where a is 0, else 0."""
    type_ = operands.modifiers.type(*LOGIC_TYPES)
    if operands.instruction.parts[0] == "cnot":
        return unary(operands, type_, lambda a: (a == 0).astype(type_.dtype))
    return unary(operands, type_, operator.invert)


def lop3(operands: Operands) -> Step:
    """Decodes PTX lop3.b32, a Boolean function of three inputs, bit by bit, by a truth table of 8 bits."""
    type_ = operands.modifiers.type("b32")
    operands.need(5)
    table = operands.constant(4)
    write = operands.destination(0, type_)
    a, b, c = (operands.source(number, type_) for number in (1, 2, 3))

    def combined(x: Array, y: Array, z: Array) -> Array:
        result = np.zeros(np.broadcast_shapes(x.shape, y.shape, z.shape), np.uint32)
        for entry in range(8):
            if table >> entry & 1:
                result |= (x if entry & 4 else ~x) & (y if entry & 2 else ~y) & (z if entry & 1 else ~z)
        return result

    return lambda resident: write(resident, combined(a(resident), b(resident), c(resident)))


def shift(operands: Operands) -> Step:
    """Decodes PTX ``shl`` and ``shr``; a shift by the width or more gives 0, or for signed shr the sign."""
    type_ = operands.modifiers.type()
    function = shift_left if operands.instruction.parts[0] == "shl" else shift_right
    return binary_of(operands, type_, (type_, U32), lambda a, amount: function(a, amount, type_))


def shift_left(a: Array, amount: Array, type_: PtxType) -> Array:
    """Returns a << amount for arrays of ``type_``; 0 where the amount is the width in bits or more."""
    shifted: Array = a << np.minimum(amount, type_.bits - 1).astype(type_.dtype)
    return np.where(amount >= type_.bits, type_.dtype.type(0), shifted)


def shift_right(a: Array, amount: Array, type_: PtxType) -> Array:
    """Returns a >> amount for arrays of ``type_``; 0, or the sign, where the amount is the width or more."""
    shifted: Array = a >> np.minimum(amount, type_.bits - 1).astype(type_.dtype)
    if type_.is_signed:
        return shifted
    return np.where(amount >= type_.bits, type_.dtype.type(0), shifted)


def funnel_shift(operands: Operands) -> Step:
    """Decodes PTX ``shf``, which shifts the 64 bits of two registers and keeps 32 of them.

    ``.l`` shifts left and keeps the upper half, ``.r`` shifts right and keeps the lower half. The amount is
    taken modulo 32 with ``.wrap``, and limited to 32 with ``.clamp``.
    """
    type_ = operands.modifiers.type("b32")
    side = operands.modifiers.need(("l", "r"), "a side")
    mode = operands.modifiers.need(("wrap", "clamp"), "a mode")

    def shifted(low: Array, high: Array, amount: Array) -> Array:
        both = high.astype(np.uint64) << np.uint64(32) | low
        count = (amount & np.uint32(31) if mode == "wrap" else np.minimum(amount, 32)).astype(np.uint64)
        moved = (both << count) >> np.uint64(32) if side == "l" else both >> count
        return moved.astype(np.uint32)

    return ternary(operands, type_, shifted)


def extract(operands: Operands) -> Step:
    """Decodes PTX ``bfe``: returns a function that extracts c bits of a, from bit b on.

    Signed types are sign-extended.
    """
    type_ = operands.modifiers.type("u32", "s32", "u64", "s64")

    def extracted(a: Array, position: Array, length: Array) -> Array:
        position = position & np.uint32(255)
        length = length & np.uint32(255)
        bits = a.view(type_.raw)
        raw = PtxType(type_.name, type_.raw)  # unsigned, so that shifts to the right fill with zeros
        available = np.minimum(length, type_.bits - np.minimum(position, type_.bits)).astype(np.uint32)
        mask = _low_bits(available, raw)
        field = shift_right(bits, position, raw) & mask
        if not type_.is_signed:
            return field
        top = np.minimum(position + length - np.uint32(1), np.uint32(type_.bits - 1))
        is_negative = (shift_right(bits, top, raw) & raw.dtype.type(1) == 1) & (length > 0)
        return np.where(is_negative, field | ~mask, field).view(type_.dtype)

    return ternary_of(operands, type_, (type_, U32, U32), extracted)


def insert(operands: Operands) -> Step:
    """Decodes PTX ``bfi``: returns a function that puts the lowest d bits of a into b, from bit c on."""
    type_ = operands.modifiers.type("b32", "b64")
    operands.need(5)
    write = operands.destination(0, type_)
    a = operands.source(1, type_)
    b = operands.source(2, type_)
    start = operands.source(3, U32)
    size = operands.source(4, U32)

    def inserted(field: Array, base: Array, position: Array, length: Array) -> Array:
        position = position & np.uint32(255)
        length = length & np.uint32(255)
        mask = shift_left(_low_bits(length, type_), position, type_)
        return (base & ~mask) | (shift_left(field, position, type_) & mask)

    return lambda resident: write(
        resident, inserted(a(resident), b(resident), start(resident), size(resident))
    )


def _low_bits(count: Array, type_: PtxType) -> Array:
    one = type_.dtype.type(1)
    ones = np.array(-1).astype(type_.dtype)
    return np.where(count >= type_.bits, ones, shift_left(np.full(count.shape, one), count, type_) - one)


def permute(operands: Operands) -> Step:
    """Decodes PTX ``prmt.b32``: 4 bytes from the 8 bytes of two registers; modes are not simulated.

    Each selector digit of 4 bits names a source byte, or with its highest bit set, the byte's sign.
    """
    type_ = operands.modifiers.type("b32")

    def permuted(a: Array, b: Array, selector: Array) -> Array:
        both = b.astype(np.uint64) << np.uint64(32) | a
        result = np.zeros(np.broadcast_shapes(both.shape, selector.shape), np.uint32)
        for position in range(4):
            choice = selector >> np.uint32(4 * position) & np.uint32(15)
            byte = both >> ((choice & np.uint32(7)).astype(np.uint64) * np.uint64(8)) & np.uint64(255)
            sign = np.where(byte & np.uint64(128), np.uint64(255), np.uint64(0))
            chosen = np.where(choice & np.uint32(8), sign, byte).astype(np.uint32)
            result |= chosen << np.uint32(8 * position)
        return result

    return ternary(operands, type_, permuted)


# ``floats.arithmetic`` calls the functions from here to ``divide`` for integer types.


def integer_binary(operands: Operands, type_: PtxType) -> Step:
    """Decodes add, sub, min and max of integers: sums wrap around, or saturate (.sat); .relu: at least 0."""
    name = operands.instruction.parts[0]
    function = SIMPLE[name]
    if operands.modifiers.take("sat"):
        if type_.name != "s32" or name not in ("add", "sub"):
            raise operands.unsupported(".sat")
        limits = np.iinfo(np.int32)

        def saturated(a: Array, b: Array) -> Array:
            return np.clip(function(a.astype("i8"), b.astype("i8")), limits.min, limits.max).astype(np.int32)

        return binary(operands, type_, saturated)
    if operands.modifiers.take("relu"):
        return binary(operands, type_, lambda a, b: np.maximum(function(a, b), type_.dtype.type(0)))
    return binary(operands, type_, function)


def integer_unary(operands: Operands, type_: PtxType) -> Step:
    """Decodes PTX abs and neg of integers, which leave the most negative number unchanged."""
    function = {"abs": np.abs, "neg": np.negative}[operands.instruction.parts[0]]
    return unary(operands, type_, function)


def multiply(operands: Operands, type_: PtxType) -> Step:
    """Decodes PTX mul.lo, mul.hi and mul.wide of integers; mul.wide gives twice the width."""
    part = operands.modifiers.need(("lo", "hi", "wide"), "the part of the product")
    if part == "wide":
        wide = _twice(operands, type_)
        dtype = wide.dtype
        return binary_of(operands, wide, (type_, type_), lambda a, b: a.astype(dtype) * b.astype(dtype))
    if part == "hi":
        return binary(operands, type_, lambda a, b: high_product(a, b, type_))
    return binary(operands, type_, operator.mul)


def multiply_add(operands: Operands, type_: PtxType) -> Step:
    """Decodes PTX mad.lo, mad.hi and mad.wide of integers: a half of the product, or all of it, plus c."""
    part = operands.modifiers.need(("lo", "hi", "wide"), "the part of the product")
    if part == "wide":
        wide = _twice(operands, type_)
        dtype = wide.dtype
        types = (type_, type_, wide)
        return ternary_of(operands, wide, types, lambda a, b, c: a.astype(dtype) * b.astype(dtype) + c)
    if part == "hi":
        return ternary(operands, type_, lambda a, b, c: high_product(a, b, type_) + c)
    return ternary(operands, type_, lambda a, b, c: a * b + c)


def _twice(operands: Operands, type_: PtxType) -> PtxType:
    name = f"{type_.name[0]}{2 * type_.bits}"
    if name not in TYPES:
        raise operands.unsupported(f".wide of .{type_.name}")
    return TYPES[name]


def high_product(a: Array, b: Array, type_: PtxType) -> Array:
    """Returns the upper half of the full product a * b, elementwise, for integer arrays of ``type_``."""
    high: Array
    if type_.bits < 64:
        wide = TYPES[f"{type_.name[0]}{2 * type_.bits}"].dtype
        high = (a.astype(wide) * b.astype(wide)) >> type_.bits
        return high.astype(type_.dtype)
    # Knuth's algorithm M with 32-bit digits (TAOCP 4.3.1)
    x = a.view(np.uint64)
    y = b.view(np.uint64)
    half = np.uint64(32)
    low = np.uint64(0xFFFFFFFF)
    x_high = x >> half
    x_low = x & low
    y_high = y >> half
    y_low = y & low
    middle = x_high * y_low + (x_low * y_low >> half)
    middle_low = x_low * y_high + (middle & low)
    high = x_high * y_high + (middle >> half) + (middle_low >> half)
    if type_.is_signed:  # two's complement: a negative factor is read as a value that is 2^64 too large
        high = high - np.where(a < 0, y, 0) - np.where(b < 0, x, 0)
    return high.view(type_.dtype)


def divide(operands: Operands, type_: PtxType) -> Step:
    """Decodes PTX ``div`` (truncates; x / 0 is all ones) and ``rem`` (x rem 0 is x) of integers."""
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

    bfind gives the position of the highest bit that differs from the sign, or, with .shiftamt, the left shift
    that moves this bit to the top; 0xFFFFFFFF where there is none.
    """
    name = operands.instruction.parts[0]
    type_ = operands.modifiers.type()
    is_shift = name == "bfind" and operands.modifiers.take("shiftamt") is not None
    operands.need(2)
    write = operands.destination(0, type_ if name == "brev" else U32)
    read = operands.source(1, type_)

    def counted(values: Array) -> Array:
        if name == "bfind":
            return _found(values, type_, is_shift)
        bits = _bits(values, type_)
        if name == "brev":
            packed = np.packbits(np.ascontiguousarray(bits[:, ::-1]), axis=1, bitorder="little")
            return np.ascontiguousarray(packed).view(type_.dtype).ravel()
        if name == "popc":
            return np.asarray(bits.sum(axis=1, dtype=np.uint32))
        return np.where(bits.any(axis=1), bits[:, ::-1].argmax(axis=1), type_.bits).astype(np.uint32)

    return lambda resident: write(resident, counted(read(resident)))


def _found(values: Array, type_: PtxType, is_shift: bool) -> Array:
    """Returns the position of the highest bit of each value that differs from its sign; else 0xFFFFFFFF.

    ``is_shift``: returns the left shift that moves this bit to the top. PTX ISA, "bfind".
    """
    if type_.is_signed:
        values = np.where(values < 0, ~values, values)
    bits = _bits(values, type_)
    position = type_.bits - 1 - bits[:, ::-1].argmax(axis=1)
    position = type_.bits - 1 - position if is_shift else position
    return np.where(bits.any(axis=1), position, 0xFFFFFFFF).astype(np.uint32)


def _bits(values: Array, type_: PtxType) -> Array:
    raw = np.ascontiguousarray(values).view(np.uint8).reshape(len(values), type_.bytes)
    return np.unpackbits(raw, axis=1, bitorder="little")


DECODERS: dict[str, Callable[[Operands], Step]] = {
    **dict.fromkeys(LOGIC, logic),
    **dict.fromkeys(("not", "cnot"), negation),
    **dict.fromkeys(("shl", "shr"), shift),
    "lop3": lop3,
    "shf": funnel_shift,
    "bfe": extract,
    "bfi": insert,
    "prmt": permute,
    "sad": sum_of_differences,
    **dict.fromkeys(("popc", "clz", "brev", "bfind"), bit_operations),
}
