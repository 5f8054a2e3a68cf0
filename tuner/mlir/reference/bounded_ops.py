"""The operations in bodies of linalg ops, on arrays with bounds of their rounding errors.

Floats are ``Bounded`` arrays (running error analysis), integers exact, in two's complement.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tuner.core.dtypes import FEW_TERMS, FLOATS, number_type, sum_roundings
from tuner.core.errors import UsageError
from tuner.core.numpy_types import rounded_to_zero
from tuner.mlir.bindings import Op, ir

# Arrays with a bound of their rounding errors: running error analysis.
#
# Each operation computes in float64 what a kernel computes in a narrower type, and how far the kernel's
# result may be from it: the errors of the operands, carried over to first order, plus half a unit in the last
# place of the result's type for each rounding (Wilkinson, "Error analysis revisited", 1986; Higham, "Accuracy
# and Stability of Numerical Algorithms", section 3.3).
#
# A sum of n numbers is rounded n times, each time by at most u times a partial sum (u: half a unit in the
# last place). Up to FEW_TERMS terms the bound is that of the worst order, n u times the sum of magnitudes.
# Of more terms it is 4 sqrt(n) u times the root mean square of the partial sums: seven standard deviations of
# n independent roundings (Higham and Mary, "A new approach to probabilistic rounding error analysis", 2019).
# Partial sums of terms of one sign stay below the result, those of random signs below twice the 2-norm of the
# terms. The sum of magnitudes says less: it is sqrt(n) times too large where terms of either sign are alike,
# and (2 + sqrt(n)) u times it is not enough where one term exceeds all others, as 2**23 among random numbers:
# it is in each partial sum after it.
#
# What is added to a sum may come first, in an accumulator that begins with it. It is then in each of the n
# partial sums: therefore a ``Bounded`` has its number of ``terms``.

Float64 = npt.NDArray[np.float64]
Axes = tuple[int, ...]
FORMULA_ULPS = 10.0  # half units in the last place: the formulas' 4 units, and the rounding of the argument
Int64 = npt.NDArray[np.int64]
TO_FLOAT = ("arith.sitofp", "arith.uitofp")
FROM_FLOAT = ("arith.fptosi", "arith.fptoui")
OF_UNSIGNED = ("arith.uitofp", "arith.extui")
INTEGER_CONVERSIONS = (*TO_FLOAT, *FROM_FLOAT, "arith.extsi", "arith.extui", "arith.trunci")
UNSIGNED_FROM = 6  # predicates of arith.cmpi from here on
# By the number of the predicate: eq, ne, slt, sle, sgt, sge, ult, ule, ugt, uge.
INTEGER_COMPARISONS: tuple[Callable[[Int64, Int64], Any], ...] = (
    *(np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal),
    *(np.less, np.less_equal, np.greater, np.greater_equal),
)
PARTIAL_SUMS = 2.0  # times the 2-norm of terms of random signs: the root mean square of their partial sums
TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)
CONVERSIONS = ("arith.extf", "arith.truncf", "arith.index_cast")
LOGIC: dict[str, Any] = {
    "arith.andi": np.logical_and,
    "arith.ori": np.logical_or,
    "arith.xori": np.logical_xor,
}
TESTS: dict[str, Any] = {"math.isnan": np.isnan, "math.isinf": np.isinf, "math.isfinite": np.isfinite}
POWERS = ("math.powf", "math.fpowi")
COMPARED = ("arith.cmpf", "arith.cmpi")
OTHERS = ("math.fma", *COMPARED, "arith.select")
# arith.cmpf's predicates by number: ordered ones are false for NaN, unordered ones true.
FLOAT_COMPARISONS: dict[int, Callable[[Float64, Float64], Any]] = {
    1: np.equal,
    2: np.greater,
    3: np.greater_equal,
    4: np.less,
    5: np.less_equal,
}
ALL_TRUE = 15
ALL_FALSE = 0
ORDERED = 7
NOT_EQUAL = 6
UNORDERED_NOT_EQUAL = 13
NAN = 14


@dataclass(frozen=True)
class Bounded:
    """Expected values in float64, and how far a kernel's values may be off.

    ``error`` of a long sum holds for independent roundings, not in the worst case. It is infinite where
    any number is right: of a quotient whose divisor may be zero. Where ``value`` is NaN or infinite,
    ``error`` has no meaning.
    """

    value: Float64
    error: Float64  # absolute, broadcast with ``value``
    element: str  # type in which a kernel has the values: "f32"
    terms: int = 0  # of sums: how many terms a kernel may add to what is added to these; 0: no sums

    @classmethod
    def exact(cls, value: Any, element: str) -> "Bounded":
        """Returns values without errors, such as inputs and constants."""
        array = np.asarray(value, dtype=np.float64)
        return cls(array, np.zeros_like(array), element)

    def reshaped(self, view: Callable[[Float64], Float64]) -> "Bounded":
        shape = np.broadcast_shapes(self.value.shape, self.error.shape)
        return replace(self, value=view(self.value), error=view(np.broadcast_to(self.error, shape)))


@dataclass(frozen=True)
class Truth:
    """Results of comparisons, and where errors of the operands may have inverted them."""

    value: npt.NDArray[np.bool_]
    is_uncertain: npt.NDArray[np.bool_]


def rounded(value: Float64, error: Float64, element: str, ulps: float = 1.0) -> Bounded:
    """Returns ``value``, itself not rounded, with its error after a kernel has rounded it to ``element``.

    The error: ``error``, that before the rounding, and ``ulps`` times half a unit in the last place. Values
    too large for the type become infinite.
    """
    with np.errstate(all="ignore"):
        total = error
        if element in FLOATS:
            type_ = number_type(element)
            value = np.where(np.abs(value) > type_.largest, np.copysign(np.inf, value), value)
            total = error + ulps * type_.epsilon / 2 * np.abs(value) + type_.smallest
        # an infinite error, of a divisor that may be zero, or one times zero: any number is right
        total = np.where(np.isnan(total), np.inf, total)
        return Bounded(value, np.where(np.isfinite(value), total, 0.0), element)


def add(a: Bounded, b: Bounded) -> Bounded:
    """Returns a + b in float64; the error: of both operands, and of rounding to the type of ``a``."""
    with np.errstate(all="ignore"):
        return _added(a.value + b.value, a, b)


def subtract(a: Bounded, b: Bounded) -> Bounded:
    """Returns a - b in float64; the error: of both operands, and of rounding to the type of ``a``."""
    with np.errstate(all="ignore"):
        return _added(a.value - b.value, a, b)


def _added(value: Float64, a: Bounded, b: Bounded) -> Bounded:
    """Returns ``value``, the sum or difference of two numbers; a sum may begin with the other number."""
    error = a.error + b.error
    unit = number_type(a.element).epsilon / 2
    for sums, other in ((a, b), (b, a)):
        if sums.terms:
            error = error + sum_roundings(sums.terms) * unit * np.abs(other.value)
    return replace(rounded(value, error, a.element), terms=max(a.terms, b.terms))


def multiply(a: Bounded, b: Bounded) -> Bounded:
    """Returns a * b in float64; the error: of both operands, and of rounding to the type of ``a``."""
    with np.errstate(all="ignore"):
        return rounded(a.value * b.value, _error_of_product(a, b), a.element)


def _error_of_product(a: Bounded, b: Bounded) -> Float64:
    """Returns the error of a * b before its rounding: 0 of an exact zero times what may be any number."""
    parts = ((np.abs(a.value), b.error), (np.abs(b.value), a.error), (a.error, b.error))
    products = [np.where((left == 0.0) | (right == 0.0), 0.0, left * right) for left, right in parts]
    return products[0] + products[1] + products[2]


def divide(a: Bounded, b: Bounded) -> Bounded:
    """Returns a / b in float64; the error: of both operands, and of rounding to the type of ``a``."""
    with np.errstate(all="ignore"):
        quotient = a.value / b.value
        least = np.maximum(np.abs(b.value) - b.error, 0.0)  # 0: the divisor's sign is not known
        error = (a.error + np.abs(quotient) * b.error) / least
        return rounded(quotient, np.where(np.isnan(error), 0.0, error), a.element)


def angle(a: Bounded, b: Bounded) -> Bounded:
    """Returns the angle of the point (b, a): C's atan2(a, b)."""
    with np.errstate(all="ignore"):
        distance = np.hypot(a.value, b.value)
        error = np.where(distance > 0, (a.error + b.error) / distance, 0.0)
        return rounded(np.arctan2(a.value, b.value), error, a.element, FORMULA_ULPS)


def chosen(truth: Truth, a: Bounded, b: Bounded) -> Bounded:
    """Returns ``a`` where a comparison is true, else ``b``; where uncertain, either if both are finite."""
    with np.errstate(all="ignore"):
        value = np.where(truth.value, a.value, b.value)
        error = np.where(truth.value, a.error, b.error)
        either = np.abs(a.value - b.value) + np.maximum(a.error, b.error)
        error = np.where(truth.is_uncertain & np.isfinite(either), either, error)
        return Bounded(value, error, a.element)


def extreme(choose: Callable[[Float64, Float64], Float64]) -> Callable[[Bounded, Bounded], Bounded]:
    """Returns a function of two ``Bounded``: the maximum or minimum, with the larger of their errors.

    ``choose``: np.maximum, np.minimum, np.fmax or np.fmin.
    """

    def of(a: Bounded, b: Bounded) -> Bounded:
        return Bounded(choose(a.value, b.value), np.maximum(a.error, b.error), a.element)

    return of


def function(
    of: Callable[[Float64], Float64], slope: Callable[[Float64, Float64], Float64], ulps: float = FORMULA_ULPS
) -> Callable[[Bounded], Bounded]:
    """Returns an elementary function of a ``Bounded``, made from the numpy function ``of``.

    ``slope(x, y)``: the derivative at x, where y is ``of(x)``. ``ulps``: the error of a kernel's formula, in
    halves of a unit in the last place.
    """

    def apply(x: Bounded) -> Bounded:
        with np.errstate(all="ignore"):
            y = of(x.value)
            steepness = np.abs(slope(x.value, y))
            error = np.where(x.error > 0, steepness * x.error, 0.0)
            return rounded(y, np.where(np.isnan(error), 0.0, error), x.element, ulps)

    return apply


def square_root(x: Bounded) -> Bounded:
    """Returns the square root; its error: how far those of the interval's ends are off, and the rounding."""
    with np.errstate(all="ignore"):
        y = np.sqrt(x.value)
        least = np.sqrt(np.maximum(x.value - x.error, 0.0))
        error = np.maximum(y - least, np.sqrt(x.value + x.error) - y)
        return rounded(y, error, x.element)


def step(of: Callable[[Float64], Float64]) -> Callable[[Bounded], Bounded]:
    """Returns a function of a ``Bounded`` with jumps of 1, made from a numpy function such as np.floor.

    Where the operand's error may cross a jump, the result's error is 1, else 0.
    """

    def apply(x: Bounded) -> Bounded:
        with np.errstate(all="ignore"):
            y = of(x.value)
            is_near = (of(x.value - x.error) != y) | (of(x.value + x.error) != y)
            error = np.where(is_near & np.isfinite(y), 1.0, 0.0)
            return Bounded(y, error, x.element)

    return apply


def total(x: Bounded, axes: Axes) -> Bounded:
    """Returns the sums of ``x`` along ``axes``, which a kernel may add up in any order."""
    count = int(np.prod([x.value.shape[axis] for axis in axes]))
    with np.errstate(all="ignore"):
        value = np.sum(x.value, axis=axes)
        shape = np.broadcast_shapes(x.value.shape, x.error.shape)
        error = np.sum(np.broadcast_to(x.error, shape), axis=axes)
        if count <= FEW_TERMS:
            largest = np.sum(np.abs(x.value), axis=axes)
        else:
            scale = _scale(x.value, axes)
            norm = np.sqrt(np.sum(np.square(x.value / scale), axis=axes))
            largest = np.maximum(np.abs(value), PARTIAL_SUMS * norm * np.squeeze(scale, axes))
        return _summed(value, error, largest, count, x.element)


def product_of_matrices(a: Bounded, b: Bounded, element: str) -> Bounded:
    """Returns A B, of matrices or of batches of matrices, where a kernel sums up in the type ``element``."""
    count = a.value.shape[-1]
    with np.errstate(all="ignore"):
        value = a.value @ b.value
        if count <= FEW_TERMS:
            largest = np.abs(a.value) @ np.abs(b.value)
        else:
            of_rows = _scale(a.value, (-1,))
            of_columns = _scale(b.value, (-2,))
            squares = np.square(a.value / of_rows) @ np.square(b.value / of_columns)
            norm = np.sqrt(squares) * of_rows * of_columns
            largest = np.maximum(np.abs(value), PARTIAL_SUMS * norm)
        error = np.zeros(())
        if np.any(a.error):
            error = a.error @ (np.abs(b.value) + b.error)
        if np.any(b.error):
            error = error + np.abs(a.value) @ b.error
        return _summed(value, error, largest, count, element)


def _scale(numbers: Float64, axes: Axes) -> Float64:
    """Returns the largest magnitude along ``axes``, whose extents become 1; 1 of zeros.

    What is divided by it has squares that are not infinite.
    """
    largest = np.max(np.abs(numbers), axis=axes, keepdims=True, initial=0.0)
    return np.where(largest > 0.0, largest, 1.0)


def _summed(value: Float64, error: Float64, largest: Float64, count: int, element: str) -> Bounded:
    """Returns sums of ``count`` terms; ``error``: that of the terms, ``largest``: what partial sums reach."""
    type_ = number_type(element)
    if element in FLOATS:
        error = error + sum_roundings(count) * type_.epsilon / 2 * largest + count * type_.smallest
    return replace(rounded(value, error, element), terms=count)


ErrorOf = Callable[[Bounded, Bounded], Float64]


# Integer operations in bodies of linalg ops, on arrays: sums and products wrap around in two's complement.
#
# Integers are exact but where they come from floats: of a float that may round to either of two integers,
# both are allowed. Values of i1 are 0 and 1.


def _sum_of_errors(a: Bounded, b: Bounded) -> Float64:
    return a.error + b.error


def _larger_error(a: Bounded, b: Bounded) -> Float64:
    return np.maximum(a.error, b.error)


def _unknown_unless_exact(a: Bounded, b: Bounded) -> Float64:
    return np.where(a.error + b.error > 0, np.inf, 0.0)


INTEGERS: dict[str, tuple[Callable[[Int64, Int64], Int64], ErrorOf]] = {
    "arith.addi": (np.add, _sum_of_errors),
    "arith.subi": (np.subtract, _sum_of_errors),
    "arith.muli": (np.multiply, _error_of_product),
    "arith.maxsi": (np.maximum, _larger_error),
    "arith.minsi": (np.minimum, _larger_error),
    "arith.andi": (np.bitwise_and, _unknown_unless_exact),
    "arith.ori": (np.bitwise_or, _unknown_unless_exact),
    "arith.xori": (np.bitwise_xor, _unknown_unless_exact),
    "arith.shrsi": (np.right_shift, _unknown_unless_exact),
}


def integer_op(name: str, a: Bounded, b: Bounded, element: str) -> Bounded:
    """Returns the result of the integer op ``name``, a key of INTEGERS, wrapped to the type ``element``."""
    of, error_of = INTEGERS[name]
    return _wrapped(of(_integers(a), _integers(b)), error_of(a, b), element)


def compared_integers(predicate: int, a: Bounded, b: Bounded, element: str) -> Truth:
    """Returns the result of ``arith.cmpi`` with a predicate by number, and where errors may invert it.

    ``element``: the operands' type, such as "i32".
    """
    left, right = map(_integers, (a, b))
    error = a.error + b.error
    uncertain = (np.abs(left - right) <= error) & (error > 0)
    if predicate >= UNSIGNED_FROM:
        left, right = (_unsigned(numbers, element) for numbers in (left, right))
    return Truth(
        INTEGER_COMPARISONS[predicate](left, right), np.broadcast_to(uncertain, np.shape(left - right))
    )


def converted_integer(name: str, x: Bounded, source: str, element: str) -> Bounded:
    """Returns the result of the op ``name`` of INTEGER_CONVERSIONS, from type ``source`` to type ``element``.

    Where an inexact float may be out of the integer's range, the error allows any integer.
    """
    if name in FROM_FLOAT:
        return _rounded_to_zero(x, element, is_signed=name == "arith.fptosi")
    numbers = _integers(x)
    if source == "i1":
        numbers = numbers if name in OF_UNSIGNED else -numbers
    elif name in OF_UNSIGNED:
        numbers = _unsigned(numbers, source)
    if name not in TO_FLOAT:
        return _wrapped(numbers, x.error, element)
    wide = numbers.astype(np.float64)
    exact = 2.0 / number_type(element).epsilon  # up to here, every integer is a float
    made = rounded(wide, x.error, element)
    return Bounded(made.value, np.where(np.abs(wide) <= exact, x.error, made.error), element)


def _rounded_to_zero(x: Bounded, element: str, *, is_signed: bool) -> Bounded:
    bits = number_type(element).bits
    least, end = (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1)) if is_signed else (0.0, 2.0**bits)
    with np.errstate(all="ignore"):
        value, low, high = map(np.trunc, (x.value, x.value - x.error, x.value + x.error))
        is_known = (low >= least) & (high < end)  # false for NaN
        error = np.where(is_known, np.maximum(high - value, value - low), 2.0**bits)
    whole = rounded_to_zero(x.value, bits, is_signed=is_signed, is_double=x.element == "f64")
    made = _wrapped(whole, np.where(is_known, error, 0.0), element)
    return Bounded(made.value, np.where(is_known, made.error, np.where(x.error == 0, 0.0, error)), element)


def _wrapped(numbers: Int64, error: Float64, element: str) -> Bounded:
    """Returns integers wrapped to ``element``; any value is allowed if the error may exceed its range."""
    bits = number_type(element).bits
    if bits == 1:
        return Bounded((numbers & 1).astype(np.float64), np.where(error > 0, 1.0, 0.0), element)
    space = 64 - bits
    value = ((numbers << space) >> space).astype(np.float64)
    may_wrap = (error > 0) & (np.abs(value) + error >= 2.0 ** (bits - 1))
    return Bounded(value, np.where(may_wrap, 2.0**bits, error), element)


def _integers(x: Bounded) -> Int64:
    return np.nan_to_num(x.value, nan=0.0, posinf=0.0, neginf=0.0).astype(np.int64)


def _unsigned(numbers: Int64, element: str) -> Int64:
    bits = number_type(element).bits
    if bits < 64:
        return numbers & ((1 << bits) - 1)
    return numbers


Number = Bounded | Truth


def _each(of: Callable[[float], float]) -> Callable[[Float64], Float64]:
    return np.vectorize(of, otypes=[np.float64])


UNARY: dict[str, Callable[[Bounded], Bounded]] = {
    "math.exp": function(np.exp, lambda _, y: y),
    "math.exp2": function(np.exp2, lambda _, y: y * math.log(2)),
    "math.expm1": function(np.expm1, lambda _, y: y + 1),
    "math.log": function(np.log, lambda x, _: 1 / x),
    "math.log2": function(np.log2, lambda x, _: 1 / (x * math.log(2))),
    "math.log10": function(np.log10, lambda x, _: 1 / (x * math.log(10))),
    "math.log1p": function(np.log1p, lambda x, _: 1 / (1 + x)),
    "math.tanh": function(np.tanh, lambda _, y: 1 - y * y),
    "math.erf": function(_each(math.erf), lambda x, _: TWO_OVER_ROOT_PI * np.exp(-x * x)),
    "math.sqrt": square_root,
    "math.rsqrt": function(lambda x: 1 / np.sqrt(x), lambda x, y: 0.5 * y / x),
    "math.sin": function(np.sin, lambda x, _: np.ones_like(x)),
    "math.cos": function(np.cos, lambda x, _: np.ones_like(x)),
    "math.absf": function(np.abs, lambda x, _: np.ones_like(x), 0.0),
    "arith.negf": function(np.negative, lambda x, _: np.ones_like(x), 0.0),
    "math.tan": function(np.tan, lambda _, y: 1 + y * y),
    "math.atan": function(np.arctan, lambda x, _: 1 / (1 + x * x)),
    "math.asin": function(np.arcsin, lambda x, _: 1 / np.sqrt(1 - x * x)),
    "math.acos": function(np.arccos, lambda x, _: 1 / np.sqrt(1 - x * x)),
    "math.sinh": function(np.sinh, lambda x, _: np.cosh(x)),
    "math.cosh": function(np.cosh, lambda x, _: np.sinh(x)),
    "math.asinh": function(np.arcsinh, lambda x, _: 1 / np.sqrt(1 + x * x)),
    "math.floor": step(np.floor),
    "math.ceil": step(np.ceil),
    "math.trunc": step(np.trunc),
    "math.roundeven": step(np.rint),
}
BINARY: dict[str, Callable[[Bounded, Bounded], Bounded]] = {
    "arith.addf": add,
    "arith.subf": subtract,
    "arith.mulf": multiply,
    "arith.divf": divide,
    "arith.maximumf": extreme(np.maximum),
    "arith.minimumf": extreme(np.minimum),
    "arith.maxnumf": extreme(np.fmax),
    "arith.minnumf": extreme(np.fmin),
    "math.atan2": angle,
    "math.copysign": lambda a, b: Bounded(np.copysign(a.value, b.value), a.error, a.element),
}


def apply(op: Op, operands: list[Number]) -> Number:
    """Evaluates one op of a ``linalg`` body on whole arrays, one per operand; returns the result.

    Raises UsageError for an op that is not implemented here.
    """
    name = op.name
    element = str(op.results[0].type)
    if name in UNARY:
        return UNARY[name](_bounded(operands[0]))
    if name in BINARY:
        return BINARY[name](_bounded(operands[0]), _bounded(operands[1]))
    if name in CONVERSIONS or name in INTEGER_CONVERSIONS:
        return _converted(op, _bounded(operands[0]), element)
    if name in POWERS:
        # the power is taken as exact
        base = _bounded(operands[0])
        power = _bounded(operands[1]).value
        return function(lambda x: np.power(x, power), lambda x, y: power * y / x)(base)
    if name == "math.fma":
        x, y, z = map(_bounded, operands)
        return add(multiply(x, y), z)
    if name in COMPARED:
        return _comparison(op, _bounded(operands[0]), _bounded(operands[1]))
    if name == "arith.select":
        return chosen(_truth(operands[0]), _bounded(operands[1]), _bounded(operands[2]))
    if name in TESTS:
        return _certain(TESTS[name](_bounded(operands[0]).value))
    if name in LOGIC or name in INTEGERS:
        return _of_integers(name, operands, element)
    integers = (*INTEGERS, *INTEGER_CONVERSIONS)
    known = sorted({*UNARY, *BINARY, *CONVERSIONS, *POWERS, *TESTS, *LOGIC, *OTHERS, *integers})
    raise UsageError(f"fusion: found {name}, allowed {', '.join(known)}")


def compared(predicate: int, a: Bounded, b: Bounded) -> Truth:
    """Returns the result of ``arith.cmpf`` with a predicate by number, and where errors may invert it."""
    with np.errstate(all="ignore"):
        is_nan = np.isnan(a.value) | np.isnan(b.value)
        near = np.abs(a.value - b.value) <= a.error + b.error
        uncertain = near & (a.error + b.error > 0)
        if predicate in (ALL_FALSE, ALL_TRUE):
            return Truth(np.full(is_nan.shape, predicate == ALL_TRUE), np.zeros_like(is_nan))
        if predicate in (ORDERED, NAN):
            return Truth(is_nan == (predicate == NAN), np.zeros_like(is_nan))
        if predicate in (NOT_EQUAL, UNORDERED_NOT_EQUAL):
            value = np.not_equal(a.value, b.value) & ~is_nan
        else:
            value = FLOAT_COMPARISONS[predicate if predicate < ORDERED else predicate - ORDERED](
                a.value, b.value
            )
        return Truth(value | is_nan if predicate > ORDERED else value & ~is_nan, uncertain)


def _bounded(number: Number) -> Bounded:
    if isinstance(number, Truth):
        return Bounded.exact(number.value.astype(np.float64), "i1")
    return number


def _truth(number: Number) -> Truth:
    if isinstance(number, Truth):
        return number
    return _certain(number.value != 0)


def _certain(value: Any) -> Truth:
    return Truth(value, np.zeros_like(value))


def _comparison(op: Op, a: Bounded, b: Bounded) -> Truth:
    predicate = ir.IntegerAttr(op.attributes["predicate"]).value
    if op.name == "arith.cmpi":
        return compared_integers(predicate, a, b, str(op.operands[0].type))
    return compared(predicate, a, b)


def _converted(op: Op, x: Bounded, element: str) -> Bounded:
    if op.name in INTEGER_CONVERSIONS:
        return converted_integer(op.name, x, str(op.operands[0].type), element)
    return rounded(x.value, x.error, element)


def _of_integers(name: str, operands: list[Number], element: str) -> Number:
    if element != "i1":
        return integer_op(name, _bounded(operands[0]), _bounded(operands[1]), element)
    if name not in LOGIC:
        raise UsageError(f"fusion: found {name} of i1, allowed {', '.join(sorted(LOGIC))}")
    a, b = map(_truth, operands)
    return Truth(LOGIC[name](a.value, b.value), a.is_uncertain | b.is_uncertain)
