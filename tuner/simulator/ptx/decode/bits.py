"""Logic and shifts: and, or, xor, not, cnot, lop3, shl, shr, shf, bfe, bfi, prmt."""

import operator
from collections.abc import Callable

import numpy as np

from tuner.simulator.ptx.decode.operands import U32, Operands, Step
from tuner.simulator.ptx.decode.steps import binary, binary_of, ternary, ternary_of, unary
from tuner.simulator.ptx.dtypes import Array, PtxType

LOGIC: dict[str, Callable[[Array, Array], Array]] = {
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
}
LOGIC_TYPES = ("pred", "b16", "b32", "b64")


def logic(operands: Operands) -> Step:
    """Decodes PTX and, or and xor, of predicates or bits: returns a function that computes the result."""
    return binary(operands, operands.modifiers.type(*LOGIC_TYPES), LOGIC[operands.instruction.parts[0]])


def negation(operands: Operands) -> Step:
    """Decodes PTX not and cnot: returns a function that inverts all bits, or gives 1 where a is 0, else 0."""
    type_ = operands.modifiers.type(*LOGIC_TYPES)
    if operands.instruction.parts[0] == "cnot":
        return unary(operands, type_, lambda a: (a == 0).astype(type_.dtype))
    return unary(operands, type_, operator.invert)


def lop3(operands: Operands) -> Step:
    """Decodes PTX lop3.b32: returns a function that applies a Boolean function of three inputs to every bit.

    The operand immLut, a constant, is the function's truth table of 8 bits. PTX ISA, "lop3".
    """
    type_ = operands.modifiers.type("b32")
    operands.need(5)
    table = operands.constant(4)
    write = operands.destination(0, type_)
    a, b, c = (operands.source(number, type_) for number in (1, 2, 3))

    def combined(x: Array, y: Array, z: Array) -> Array:
        result = np.zeros(np.broadcast_shapes(x.shape, y.shape, z.shape), np.uint32)
        for row in range(8):
            if table >> row & 1:
                result |= (x if row & 4 else ~x) & (y if row & 2 else ~y) & (z if row & 1 else ~z)
        return result

    return lambda resident: write(resident, combined(a(resident), b(resident), c(resident)))


def shift(operands: Operands) -> Step:
    """Decodes PTX ``shl`` and ``shr``: returns a function that shifts a register left or right.

    A shift by the width of the type or more gives 0, or the sign for ``shr`` of a signed type.
    """
    is_left, type_ = operands.instruction.parts[0] == "shl", operands.modifiers.type()

    def shifted(a: Array, amount: Array) -> Array:
        return shift_left(a, amount, type_) if is_left else shift_right(a, amount, type_)

    return binary_of(operands, type_, (type_, U32), shifted)


def shift_left(a: Array, amount: Array, type_: PtxType) -> Array:
    """Returns a << amount, elementwise, for arrays ``a`` of ``type_``.

    0 where the amount is at least the bit width of the type.
    """
    small = np.minimum(amount, type_.bits - 1).astype(type_.dtype)
    found: Array = np.where(amount >= type_.bits, type_.dtype.type(0), a << small)
    return found


def shift_right(a: Array, amount: Array, type_: PtxType) -> Array:
    """Returns a >> amount, elementwise, for arrays ``a`` of ``type_``.

    Where the amount is at least the bit width: 0 for an unsigned type, 0 or -1 (the sign) for a signed type.
    """
    small = np.minimum(amount, type_.bits - 1).astype(type_.dtype)
    if type_.is_signed:
        signed: Array = a >> small
        return signed
    found: Array = np.where(amount >= type_.bits, type_.dtype.type(0), a >> small)
    return found


def funnel_shift(operands: Operands) -> Step:
    """Decodes PTX ``shf``: returns a function that shifts the 64 bits of two registers and keeps 32 of them.

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
    """Decodes PTX ``bfe``: returns a function that moves a bit field of a register to the lowest bits.

    Operands are the register, the field's first bit and its length. Signed types sign-extend the field.
    """
    type_ = operands.modifiers.type("u32", "s32", "u64", "s64")

    def extracted(a: Array, position: Array, length: Array) -> Array:
        position, length = position & np.uint32(255), length & np.uint32(255)
        bits = a.view(type_.raw)
        raw = PtxType(type_.name, type_.raw)
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
    """Decodes PTX ``bfi``: returns a function that replaces a bit field of operand b by low bits of a.

    The third and fourth source operands are the field's first bit and its length.
    """
    type_ = operands.modifiers.type("b32", "b64")
    operands.need(5)
    write = operands.destination(0, type_)
    a, b = operands.source(1, type_), operands.source(2, type_)
    start, size = operands.source(3, U32), operands.source(4, U32)

    def inserted(field: Array, base: Array, position: Array, length: Array) -> Array:
        position, length = position & np.uint32(255), length & np.uint32(255)
        mask = shift_left(_low_bits(length, type_), position, type_)
        return (base & ~mask) | (shift_left(field, position, type_) & mask)

    return lambda resident: write(
        resident, inserted(a(resident), b(resident), start(resident), size(resident))
    )


def _low_bits(count: Array, type_: PtxType) -> Array:
    """Returns numbers whose ``count`` lowest bits are set."""
    one = type_.dtype.type(1)
    ones = np.array(-1).astype(type_.dtype)
    return np.where(count >= type_.bits, ones, shift_left(np.full(count.shape, one), count, type_) - one)


def permute(operands: Operands) -> Step:
    """Decodes PTX ``prmt.b32``: returns a function that builds 4 bytes from the 8 bytes of two registers.

    Each selector digit of 4 bits names a source byte; with its highest bit set, the byte's sign fills the
    result's byte. Modes such as ``.f4e`` are not simulated.
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


DECODERS: dict[str, Callable[[Operands], Step]] = {
    **dict.fromkeys(LOGIC, logic),
    **dict.fromkeys(("not", "cnot"), negation),
    **dict.fromkeys(("shl", "shr"), shift),
    "lop3": lop3,
    "shf": funnel_shift,
    "bfe": extract,
    "bfi": insert,
    "prmt": permute,
}
