"""Steps of elementwise arithmetic on integers and floats, and the functions by which reductions combine."""

import operator
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from tuner.core.numpy_types import DType
from tuner.gpu.interpreter.decoding import Decode, FunctionScope, LaneFrame, Step, require, where_of
from tuner.gpu.interpreter.lanes import BOOL, Array, signed, to_integer, unsigned, with_trailing_axes
from tuner.mlir.bindings import Op, ir
from tuner.mlir.ir.reading import unsupported

Compute: TypeAlias = Callable[..., Any]
F32 = np.dtype(np.float32)
F64 = np.dtype(np.float64)
SPLIT = 2.0**27 + 1  # splits a float64 into two halves; Dekker, A floating-point technique, 1971
Binary = Callable[[Array, Array], Array]
# In the order of arith's predicates: eq, ne, slt, sle, sgt, sge, ult, ule, ugt, uge.
LESS_OR_GREATER = (operator.lt, operator.le, operator.gt, operator.ge)
PREDICATES: tuple[tuple[Callable[[Array, Array], Array], Callable[[Array], Array]], ...] = (
    *((compare, signed) for compare in (operator.eq, operator.ne, *LESS_OR_GREATER)),
    *((compare, unsigned) for compare in LESS_OR_GREATER),
)
Combine: TypeAlias = Callable[[Array, Array], Array]


def step_of(op: Op, scope: FunctionScope, compute: Compute) -> Step:
    """Returns the step that computes the only result of ``op``: ``compute`` of its operands' arrays."""
    sources = scope.slots(op.operands)
    (target,) = scope.slots(op.results)
    if len(sources) == 1:
        (only,) = sources

        def unary(frame: LaneFrame) -> None:
            frame.values[target] = compute(frame.values[only])

        return unary
    if len(sources) == 2:
        first, second = sources

        def binary(frame: LaneFrame) -> None:
            frame.values[target] = compute(frame.values[first], frame.values[second])

        return binary

    def step(frame: LaneFrame) -> None:
        frame.values[target] = compute(*(frame.values[slot] for slot in sources))

    return step


def elementwise(compute: Compute) -> Decode:
    """Returns the decoder of an operation whose only result is ``compute`` of its operands' arrays."""
    return lambda op, scope: step_of(op, scope, compute)


def of_result(make: Callable[[Any], Compute]) -> Decode:
    """Returns the decoder of an operation whose only result is ``make(dtype)`` applied to its operands.

    ``dtype`` is the numpy type of the result.
    """
    return lambda op, scope: step_of(op, scope, make(scope.element(op, op.results[0].type).dtype))


def aligned(scalar: Array, vector: Array) -> Array:
    """Returns ``scalar``, a number per lane, with appended axes of size 1: as many axes as ``vector``."""
    return with_trailing_axes(scalar, vector.ndim - scalar.ndim)


# Floating-point arithmetic, each operation rounded to its type; fast-math flags only permit other results.


def extreme(function: Callable[[Array, Array], Array], *, is_max: bool) -> Callable[[Array, Array], Array]:
    """Returns ``function``, numpy's maximum (``is_max``) or minimum, changed so that -0 is less than +0."""

    def compute(a: Array, b: Array) -> Array:
        first = np.signbit(a) != is_max
        return np.where(a == b, np.where(first, a, b), function(a, b))

    return compute


FLOAT_BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "addf": operator.add,
    "subf": operator.sub,
    "mulf": operator.mul,
    "divf": operator.truediv,
    "remf": np.fmod,
    "maximumf": extreme(np.maximum, is_max=True),  # returns NaN if either operand is NaN
    "minimumf": extreme(np.minimum, is_max=False),
    "maxnumf": extreme(np.fmax, is_max=True),  # returns the number if one operand is NaN
    "minnumf": extreme(np.fmin, is_max=False),
}
ORDERED: tuple[Callable[[Array, Array], Array], ...] = (
    *(operator.eq, operator.gt, operator.ge, operator.lt, operator.le),
    lambda a, b: (a < b) | (a > b),
)


def predicate(number: int) -> Callable[[Array, Array], Array]:
    """Returns the comparison of float arrays for predicate ``number`` of MLIR's ``arith.cmpf``."""
    if number in (0, 15):  # false, true
        return lambda a, b: np.broadcast_to(np.array(number == 15), np.broadcast_shapes(a.shape, b.shape))
    if number == 7:  # ord
        return lambda a, b: ~(np.isnan(a) | np.isnan(b))
    if number == 14:  # uno
        return lambda a, b: np.isnan(a) | np.isnan(b)
    if number < 7:  # oeq, ogt, oge, olt, ole, one: false for NaN
        return ORDERED[number - 1]
    # ueq, ugt, uge, ult, ule, une: also true for NaN
    compare = ORDERED[number - 8]
    return lambda a, b: compare(a, b) | np.isnan(a) | np.isnan(b)


def _predicate_of(op: Op) -> int:
    return int(ir.IntegerAttr(op.attributes["predicate"]).value)


def fused(a: Array, b: Array, c: Array) -> Array:
    """Returns ``a * b + c`` rounded once; of float64 by error-free transforms: the last bit may differ."""
    if a.dtype == F64:
        product = a * b
        total = product + c
        better = total + (_product_error(a, b, product) + _sum_error(product, c, total))
        return np.where(np.isfinite(better), better, total)
    wide = [factor.astype(F64) for factor in (a, b, c)]
    product = wide[0] * wide[1]  # exact: 48 bits at most
    total = product + wide[2]
    lost = _sum_error(product, wide[2], total)
    # Rounding to odd makes the second rounding correct: Boldo and Melquiond, Emulation of FMA, 2008
    bits = total.view(np.int64)
    is_even = ((bits & 1) == 0) & (lost != 0) & np.isfinite(total)
    away = (lost > 0) == (total > 0)
    return np.where(is_even, (bits + np.where(away, 1, -1)).view(F64), total).astype(a.dtype)


def _sum_error(a: Array, b: Array, total: Array) -> Array:
    """Returns a + b - total exactly, the rounding error of ``total``; Knuth, TAOCP 2, 4.2.2."""
    back: Array = total - a
    lost: Array = (a - (total - back)) + (b - back)
    return lost


def _product_error(a: Array, b: Array, product: Array) -> Array:
    """Returns the rounding error of a product; Dekker 1971."""
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    rest: Array = (a_high * b_high - product) + a_high * b_low + a_low * b_high
    rest += a_low * b_low
    return rest


def _halves(a: Array) -> tuple[Array, Array]:
    high = a * SPLIT - (a * SPLIT - a)
    return high, a - high


FLOAT_OPS: dict[str, Decode] = {
    **{f"arith.{name}": elementwise(function) for name, function in FLOAT_BINARY.items()},
    "arith.negf": elementwise(operator.neg),
    "arith.cmpf": lambda op, scope: step_of(op, scope, predicate(_predicate_of(op))),
    "math.fma": elementwise(fused),
    "vector.fma": elementwise(fused),
}


# Integer arithmetic: two's complement with wrap-around; the operation determines the signedness.


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
        result = function(unsigned(a), unsigned(b))
        if a.dtype == BOOL:
            return to_integer(result, BOOL)
        return result.view(a.dtype)

    return compute


# Operations that do not depend on signedness are computed on signed integers.
INTEGER_BINARY: dict[str, Binary] = {
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


def division(function: Binary) -> Decode:
    """Returns the decoder of an integer division or remainder, which ``function`` computes on arrays."""

    def decode(op: Op, scope: FunctionScope) -> Step:
        compute = step_of(op, scope, function)
        where = where_of(op)
        divisor = scope.slot(op.operands[1])

        def step(frame: LaneFrame) -> None:
            require(frame.values[divisor] != 0, frame, where, "found a division by zero")
            compute(frame)

        return step

    return decode


def integer_comparison(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``arith.cmpi``: compares integers elementwise by the operation's predicate."""
    compare, read = PREDICATES[_predicate_of(op)]
    return step_of(op, scope, lambda a, b: compare(read(a), read(b)))


def extended(wide: Callable[[Array, Array], Array], read: Callable[[Array], Array]) -> Decode:
    """Returns the decoder of an operation with two results: the low and the high half of a wide integer.

    ``wide`` computes the integer from two arrays of Python integers; ``read`` first makes each operand signed
    or unsigned.
    """

    def decode(op: Op, scope: FunctionScope) -> Step:
        dtypes = [scope.element(op, result.type).dtype for result in op.results]
        (first, second), targets = scope.slots(op.operands), scope.slots(op.results)

        def step(frame: LaneFrame) -> None:
            left, right = (read(frame.values[slot]) for slot in (first, second))
            bits = 1 if frame.values[first].dtype == BOOL else 8 * left.itemsize
            whole = wide(left.astype(object), right.astype(object))
            for target, dtype, half in zip(targets, dtypes, (whole, whole >> bits), strict=True):
                frame.values[target] = _low_bits(half, dtype)

        return step

    return decode


def _low_bits(numbers: Array, dtype: DType) -> Array:
    bits = 1 if dtype == BOOL else 8 * dtype.itemsize
    low_bits = (numbers & ((1 << bits) - 1)).astype(f"u{dtype.itemsize}")
    if dtype == BOOL:
        return to_integer(low_bits, BOOL)
    return low_bits.view(dtype)


INTEGER_OPS: dict[str, Decode] = {
    **{f"arith.{name}": elementwise(function) for name, function in INTEGER_BINARY.items()},
    **{f"arith.{name}": division(function) for name, function in DIVISIONS.items()},
    "arith.cmpi": integer_comparison,
    "arith.addui_extended": extended(operator.add, unsigned),
    "arith.mulsi_extended": extended(operator.mul, signed),
    "arith.mului_extended": extended(operator.mul, unsigned),
}
INTEGERS: dict[str, Combine] = {
    **{name: INTEGER_BINARY[name] for name in ("minui", "minsi", "maxui", "maxsi")},
    **{name: INTEGER_BINARY[f"{name}i"] for name in ("add", "mul", "and", "or", "xor")},
}
FLOATS: dict[str, Combine] = {
    **{name: FLOAT_BINARY[name] for name in ("minnumf", "maxnumf", "minimumf", "maximumf")},
    **{name: FLOAT_BINARY[f"{name}f"] for name in ("add", "mul")},
}


def combination(op: Op, scope: FunctionScope, kind: str) -> Combine:
    """Returns the function by which a reduction combines two arrays of numbers.

    ``kind``: the text of the operation's attribute, such as ``#vector.kind<add>``. Raises
    CandidateError(COMPILE) for a kind that the interpreter lacks.
    """
    name = kind.removesuffix(">").replace("<", " ").split()[-1]  # #gpu<all_reduce_op add>, #vector.kind<add>
    known = INTEGERS if scope.element(op, op.results[0].type).dtype.kind in "ib" else FLOATS
    if name not in known:
        raise unsupported(op, name, ", ".join(known))
    return known[name]


DECODERS: dict[str, Decode] = {**INTEGER_OPS, **FLOAT_OPS}
