"""Ranges of integers that are computed of weights, known without their data: a nibble of a byte has 4 bits.

%u = arith.andi %byte, %c15 : i8     // 0 to 15
%q = arith.subi %u, %c8 : i8         // -8 to 7
"""

from collections.abc import Callable, Mapping

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.fusions import operations
from tuner.models.fusions.views import moved_loops

Range = tuple[int, int]  # the least and the greatest number that a value can have
NO_LIMIT: Range = (-(1 << 64), 1 << 64)  # wider than any type: a result of it is any number of its type


def range_of(value: Value) -> Range:
    """Returns the least and the greatest integer that an element of a tensor, or an integer, can be.

    Followed are views, moves, concatenations and generics of the operations ``RULES``; what else computes a
    value may give any number of its type.
    """
    op = operations.defining(value)
    if op is None:
        return _any(value)
    if op.name == operations.CONSTANT:
        number = op.attributes["value"]
        if isinstance(number, ir.IntegerAttr):
            return (int(number.value), int(number.value))
    elif op.name in operations.VIEWS or moved_loops(op) is not None:
        return range_of(op.operands[0])
    elif op.name == operations.CONCAT:
        lows, highs = zip(*map(range_of, op.operands), strict=True)
        return (min(lows), max(highs))
    elif op.name == operations.GENERIC and all(operations.is_parallel(op)):
        return _range_of_body(op)
    return _any(value)


def _range_of_body(op: Op) -> Range:
    arguments = list(op.regions[0].blocks[0].arguments)
    known: dict[Value, Range] = dict(zip(arguments, map(range_of, operations.inputs_of(op)), strict=False))
    *steps, end = operations.body_of(op)
    for step in steps:
        if step.name == operations.CONSTANT:
            continue
        ranges = [known.get(operand) or range_of(operand) for operand in step.operands]
        any_number = _any(step.results[0])
        low, high = any_number
        if step.name in RULES:
            low, high = RULES[step.name](ranges[0], ranges[1])
        if low < any_number[0] or any_number[1] < high:  # the result wraps around
            low, high = any_number
        known[step.results[0]] = (low, high)
    return known.get(end.operands[0], _any(end.operands[0]))


def _any(value: Value) -> Range:
    """Returns the range of a value's integer type."""
    type_ = value.type
    if isinstance(type_, ir.ShapedType):
        type_ = type_.element_type
    bits = ir.IntegerType(type_).width
    return (-(1 << bits - 1), (1 << bits - 1) - 1)


def _bits_of_both(first: Range, second: Range) -> Range:
    limits = [high for low, high in (first, second) if low >= 0]
    if limits:
        return (0, min(limits))
    return NO_LIMIT


def _shifted(first: Range, second: Range) -> Range:
    count, most = second
    if 0 <= count == most:
        return (first[0] >> count, first[1] >> count)
    return NO_LIMIT


# An operation of two integers -> the range of its result, of those of its operands.
RULES: Mapping[str, Callable[[Range, Range], Range]] = {
    "arith.addi": lambda first, second: (first[0] + second[0], first[1] + second[1]),
    "arith.subi": lambda first, second: (first[0] - second[1], first[1] - second[0]),
    "arith.andi": _bits_of_both,
    "arith.shrsi": _shifted,
}
