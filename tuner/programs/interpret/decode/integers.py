"""Integer arithmetic: two's complement with wrap-around; the operation determines the signedness."""

import operator
from collections.abc import Callable

import numpy as np

from tuner.core.numpy_types import DType
from tuner.mlir.bindings import Op, ir
from tuner.programs.interpret.decode.steps import elementwise, step_of
from tuner.programs.interpret.element_types import BOOL, Array, signed, to_integer, unsigned
from tuner.programs.interpret.frame import LaneFrame, Step, require
from tuner.programs.interpret.scope import Decode, FunctionScope, where_of

Binary = Callable[[Array, Array], Array]


def truncated_division(a: Array, b: Array) -> Array:
    """Returns ``a / b`` of integer arrays rounded towards zero, as in C; ``b`` must not contain 0."""
    quotient: Array = a // b
    quotient += (quotient * b != a) & ((a < 0) != (b < 0))
    return quotient


def raised_division(a: Array, b: Array) -> Array:
    """Returns ``a / b`` of integer arrays rounded towards positive infinity; ``b`` must not contain 0."""
    quotient: Array = a // b
    quotient += quotient * b != a
    return quotient


def as_signed(function: Binary) -> Binary:
    """Returns ``function`` applied to operands read as signed; the result has the first operand's type."""
    return lambda a, b: to_integer(function(signed(a), signed(b)), a.dtype)


def as_unsigned(function: Binary) -> Binary:
    """Returns ``function`` applied to operands read as unsigned; the result has the first operand's type."""

    def compute(a: Array, b: Array) -> Array:
        found = function(unsigned(a), unsigned(b))
        return to_integer(found, BOOL) if a.dtype == BOOL else found.view(a.dtype)

    return compute


# Operations that do not depend on signedness are computed on signed integers.
BINARY: dict[str, Binary] = {
    "addi": as_signed(operator.add),
    "subi": as_signed(operator.sub),
    "muli": as_signed(operator.mul),
    "andi": as_signed(operator.and_),
    "ori": as_signed(operator.or_),
    "xori": as_signed(operator.xor),
    "shli": as_signed(np.left_shift),
    "shrsi": as_signed(np.right_shift),
    "shrui": as_unsigned(np.right_shift),
    "maxsi": as_signed(np.maximum),
    "minsi": as_signed(np.minimum),
    "maxui": as_unsigned(np.maximum),
    "minui": as_unsigned(np.minimum),
}
DIVISIONS: dict[str, Binary] = {
    "divsi": as_signed(truncated_division),
    "floordivsi": as_signed(operator.floordiv),
    "ceildivsi": as_signed(raised_division),
    "remsi": as_signed(np.fmod),
    "divui": as_unsigned(operator.floordiv),
    "ceildivui": as_unsigned(raised_division),
    "remui": as_unsigned(operator.mod),
}
# In the order of arith's predicates: eq, ne, slt, sle, sgt, sge, ult, ule, ugt, uge.
PREDICATES: tuple[tuple[Callable[[Array, Array], Array], Callable[[Array], Array]], ...] = (
    (operator.eq, signed),
    (operator.ne, signed),
    (operator.lt, signed),
    (operator.le, signed),
    (operator.gt, signed),
    (operator.ge, signed),
    (operator.lt, unsigned),
    (operator.le, unsigned),
    (operator.gt, unsigned),
    (operator.ge, unsigned),
)


def division(function: Binary) -> Decode:
    """Returns the decoder of an integer division or remainder, which ``function`` computes on arrays.

    A decoder takes an operation and its function's scope, and returns a step; this step raises
    CandidateError(RUN) where an active lane divides by zero.
    """

    def decode(op: Op, scope: FunctionScope) -> Step:
        compute, where = step_of(op, scope, function), where_of(op)
        divisor = scope.slot(op.operands[1])

        def step(frame: LaneFrame) -> None:
            require(frame.values[divisor] != 0, frame, where, "found a division by zero")
            compute(frame)

        return step

    return decode


def comparison(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``arith.cmpi``: compares integers elementwise by the operation's predicate.

    A step is a function that executes ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA
    values to frame slots.
    """
    compare, read = PREDICATES[ir.IntegerAttr(op.attributes["predicate"]).value]
    return step_of(op, scope, lambda a, b: compare(read(a), read(b)))


def extended(wide: Callable[[Array, Array], Array], read: Callable[[Array], Array]) -> Decode:
    """Returns the decoder of an integer operation with two results, the low and high half of a wide one.

    A decoder takes an operation and its function's scope, and returns the step that executes the operation.

    Args:
        wide: the operation on arrays of Python integers, such as addition or multiplication.
        read: interprets the operands as signed or as unsigned integers.
    """

    def decode(op: Op, scope: FunctionScope) -> Step:
        dtypes = [scope.element(op, result.type).dtype for result in op.results]
        (first, second), targets = scope.slots(op.operands), scope.slots(op.results)

        def step(frame: LaneFrame) -> None:
            one, other = (read(frame.values[slot]) for slot in (first, second))
            bits = _bits(one.dtype, frame.values[first].dtype)
            whole = wide(one.astype(object), other.astype(object))
            for target, dtype, part in zip(targets, dtypes, (whole, whole >> bits), strict=True):
                frame.values[target] = _cut(part, dtype)

        return step

    return decode


def _bits(read: DType, dtype: DType) -> int:
    return 1 if dtype == BOOL else 8 * read.itemsize


def _cut(numbers: Array, dtype: DType) -> Array:
    """Returns the low bits of Python integers as an integer type."""
    bits = 1 if dtype == BOOL else 8 * dtype.itemsize
    cut = (numbers & ((1 << bits) - 1)).astype(f"u{dtype.itemsize}")
    return to_integer(cut, BOOL) if dtype == BOOL else cut.view(dtype)


DECODERS: dict[str, Decode] = {
    **{f"arith.{name}": elementwise(function) for name, function in BINARY.items()},
    **{f"arith.{name}": division(function) for name, function in DIVISIONS.items()},
    "arith.cmpi": comparison,
    "arith.addui_extended": extended(operator.add, unsigned),
    "arith.mulsi_extended": extended(operator.mul, signed),
    "arith.mului_extended": extended(operator.mul, unsigned),
}
