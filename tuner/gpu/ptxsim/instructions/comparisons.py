"""Decoders of comparison and selection: setp, set, selp, slct, testp."""

from collections.abc import Callable

import numpy as np

from tuner.gpu.ptxsim.instructions.floats import flushing
from tuner.gpu.ptxsim.instructions.operands import PREDICATE, Operands, Reader, Step, always
from tuner.gpu.ptxsim.ptx.dtypes import Array, PtxType
from tuner.gpu.ptxsim.state.resident_blocks import ResidentBlocks

Comparison = Callable[[Array, Array], Array]
ORDERED: dict[str, Comparison] = {
    "eq": np.equal,
    "ne": lambda a, b: (a != b) & ~_is_unordered(a, b),
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
UNSIGNED: dict[str, Comparison] = {
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
}
COMBINE: dict[str, Comparison] = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}
TESTS: dict[str, Callable[[Array], Array]] = {
    "finite": np.isfinite,
    "infinite": np.isinf,
    "number": lambda a: ~np.isnan(a),
    "notanumber": np.isnan,
    "normal": lambda a: np.isfinite(a) & ((a == 0) | (np.abs(a) >= np.finfo(a.dtype).tiny)),
    "subnormal": lambda a: (a != 0) & (np.abs(a) < np.finfo(a.dtype).tiny),
}


def _is_unordered(a: Array, b: Array) -> Array:
    return np.isnan(a) | np.isnan(b)


def set_predicate(operands: Operands) -> Step:
    """Decodes PTX ``setp``: returns a function that compares two operands and writes a predicate.

    With .and, .or or .xor the result is combined with a third operand. A second destination gets the negated
    comparison, combined likewise; for packed types the comparison of the upper elements.
    """
    type_ = operands.modifiers.type()
    compare = _comparison(operands, type_)
    start = flushing(operands, type_)
    combine, third = _combination(operands)
    a = operands.source(1, type_)
    b = operands.source(2, type_)
    first, second = operands.pair(0)
    write = operands.writer(first, PREDICATE)
    write_second = None if second is None else operands.writer(second, PREDICATE)
    is_packed = type_.elements == 2
    if is_packed and second is None:
        raise operands.unsupported("this instruction with one predicate for two numbers")

    def step(resident: ResidentBlocks) -> None:
        result = compare(start(a(resident)), start(b(resident)))
        low, high = (result[0::2], result[1::2]) if is_packed else (result, ~result)
        write(resident, combine(low, third(resident)))
        if write_second is not None:
            write_second(resident, combine(high, third(resident)))

    return step


def _comparison(operands: Operands, type_: PtxType) -> Comparison:
    """Consumes the comparison operator and returns its function. PTX ISA, "Floating-Point Comparisons"."""
    if not type_.is_float:
        integers: dict[str, Comparison] = {**ORDERED, **UNSIGNED, "ne": np.not_equal}
        return integers[operands.modifiers.need(integers, "a comparison")]
    table: dict[str, Comparison] = {**ORDERED, "num": lambda a, b: ~_is_unordered(a, b), "nan": _is_unordered}
    name = operands.modifiers.need((*table, *(f"{name}u" for name in ORDERED)), "a comparison")
    if name in table:
        return table[name]
    return lambda a, b: ORDERED[name[:-1]](a, b) | _is_unordered(a, b)


def _combination(operands: Operands) -> tuple[Comparison, Reader]:
    """Consumes .and, .or or .xor of an opcode; returns its function and the reader of its operand.

    Without such a modifier: logical or, and a reader of False, so that the result is not changed.
    """
    word = operands.modifiers.take(*COMBINE)
    operands.need(4 if word else 3)
    if word:
        return (COMBINE[word], operands.source(3, PREDICATE))
    return (np.logical_or, always(0))


def set_value(operands: Operands) -> Step:
    """Decodes PTX ``set``: returns a function that compares as ``setp`` and writes a number.

    That is all ones (u32, s32) or 1.0 (f32) if the comparison is true, else 0.
    """
    type_ = operands.modifiers.type()
    result = operands.modifiers.type("u32", "s32", "f32")
    compare = _comparison(operands, type_)
    start = flushing(operands, type_)
    combine, third = _combination(operands)
    a = operands.source(1, type_)
    b = operands.source(2, type_)
    write = operands.destination(0, result)
    true = result.dtype.type(1) if result.is_float else np.array(-1).astype(result.dtype)

    def step(resident: ResidentBlocks) -> None:
        holds = combine(compare(start(a(resident)), start(b(resident))), third(resident))
        write(resident, np.where(holds, true, result.dtype.type(0)))

    return step


def select(operands: Operands) -> Step:
    """Decodes PTX selp: returns a function that writes operand a where the predicate c is True, else b."""
    type_ = operands.modifiers.type()
    operands.need(4)
    a = operands.source(1, type_)
    b = operands.source(2, type_)
    chosen = operands.source(3, PREDICATE)
    write = operands.destination(0, type_)
    return lambda resident: write(resident, np.where(chosen(resident), a(resident), b(resident)))


def select_by_sign(operands: Operands) -> Step:
    """Decodes PTX ``slct``: returns a function that writes operand a where c >= 0, else b, also for NaN."""
    condition = operands.modifiers.type("s32", "f32")
    type_ = operands.modifiers.type()
    start = flushing(operands, condition)
    operands.need(4)
    a = operands.source(1, type_)
    b = operands.source(2, type_)
    sign = operands.source(3, condition)
    write = operands.destination(0, type_)
    return lambda resident: write(resident, np.where(start(sign(resident)) >= 0, a(resident), b(resident)))


def decode_testp(operands: Operands) -> Step:
    """Decodes PTX ``testp``: returns a function that tests a property of floats. Zero is normal (PTX ISA)."""
    type_ = operands.modifiers.type("f32", "f64")
    test = TESTS[operands.modifiers.need(TESTS, "a property")]
    operands.need(2)
    read = operands.source(1, type_)
    write = operands.destination(0, PREDICATE)
    return lambda resident: write(resident, test(read(resident)))


DECODERS: dict[str, Callable[[Operands], Step]] = {
    "setp": set_predicate,
    "set": set_value,
    "selp": select,
    "slct": select_by_sign,
    "testp": decode_testp,
}
