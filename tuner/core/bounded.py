"""Values with the error that a kernel's may have, and the operations of ``arith`` and ``math`` on them.

Floats have running error bounds, integers are exact, in two's complement. The references of matmuls and of
fusions evaluate what they compute by ``apply``, ``total`` and ``product_of_matrices``.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tuner.core.dtypes import FEW_TERMS, FLOATS, number_type, sum_roundings
from tuner.core.errors import UsageError
from tuner.core.numpy_types import rounded_to_zero, wide

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
# Of f64 each result is rounded once more: the reference itself computes in float64.
#
# What is added to a sum may come first, in an accumulator that begins with it. It is then in each of the n
# partial sums: therefore a ``Bounded`` has its number of ``terms``.

Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]
Axes = tuple[int, ...]
ErrorOf = Callable[["Bounded", "Bounded"], Float64]
SumsOf = Callable[[Float64, Float64, str], "ExactSums"]
TRUTH: Final = "i1"
FORMULA_ULPS: Final = 10.0  # half units in the last place: the formulas' 4, and the argument's rounding
PARTIAL_SUMS: Final = 2.0  # times the 2-norm of terms of random signs: the partial sums' root mean square
TWO_OVER_ROOT_PI: Final = 2 / math.sqrt(math.pi)
ERF_END: Final = 6  # from here on erf is 1 in float64
ERF_NODES: Final = 32  # between 0 and 1
ERF_DEGREE: Final = 9  # of Taylor polynomials: what they leave out is below 2**-60
TINY: Final = 1e-300  # where the allowed error is 0, any difference is wrong
F16: Final = np.dtype(np.float16)
F16_OVERFLOW: Final = 65520.0  # 65504, the largest number of f16, and half of its last place


@dataclass(frozen=True)
class Bounded:
    """Expected values in float64, and how far a kernel's values may be off.

    ``error`` of a long sum holds for independent roundings, not in the worst case. It is infinite where
    any number is right: of a quotient whose divisor may be zero. Where ``value`` is NaN or infinite,
    ``error`` has no meaning. Truths are 0 or 1, with the error 1 where either is right.
    """

    value: Float64
    error: Float64  # absolute, broadcast with ``value``
    element: str  # type in which a kernel has the values: "f32"
    terms: int = 0  # of sums: how many terms a kernel may add to what is added to these; 0: no sums
    low: Float64 | None = None  # below it is no kernel's value, where that says more than ``error``

    @property
    def lowest(self) -> Float64:
        """Returns lower bounds of a kernel's values, elementwise: ``low``, or else ``value - error``."""
        return self.value - self.error if self.low is None else self.low

    @classmethod
    def exact(cls, value: Any, element: str) -> "Bounded":
        """Returns ``value`` as values without errors, such as inputs and constants."""
        return cls(np.asarray(value, dtype=np.float64), np.zeros(()), element)

    def reshaped(self, view: Callable[[Float64], Float64]) -> "Bounded":
        shape = np.broadcast_shapes(self.value.shape, self.error.shape)
        error = view(np.broadcast_to(self.error, shape))
        return replace(self, value=view(self.value), error=error, low=None)


def apply(name: str, operands: Sequence[Bounded], element: str, predicate: int = 0) -> Bounded:
    """Evaluates an op of ``arith`` or ``math`` on whole arrays, one per operand; returns the result.

    ``element``: the type of the result; ``predicate``: of a comparison, by its number in MLIR.
    Raises UsageError for an op that is not implemented here.
    """
    with np.errstate(all="ignore"):
        if name in FUNCTIONS:
            return FUNCTIONS[name](*operands)
        if name in CONVERSIONS:
            return rounded(operands[0].value, operands[0].error, element)
        if name in INTEGER_CONVERSIONS:
            return _converted_integer(name, operands[0], element)
        if name in COMPARISONS:
            return COMPARISONS[name](predicate, *operands)
        if name in INTEGERS:
            return _of_integers(name, operands, element)
    known = sorted({*FUNCTIONS, *CONVERSIONS, *INTEGER_CONVERSIONS, *COMPARISONS, *INTEGERS})
    raise UsageError(f"fusion: found {name}, allowed {', '.join(known)}")


def units_of_error(found: npt.NDArray[Any], expected: Float64, tolerance: Float64) -> Float64:
    """Returns the errors of a kernel's numbers in units of their tolerances; all arrays have one shape.

    Infinite for NaN and infinity that are not expected; 0 where the tolerance is infinite. Numbers of f16 may
    also be infinite where the expected value and its tolerance are too large for f16.
    """
    if found.dtype.kind == "i" and not np.any(tolerance):
        return np.where(found == expected, 0.0, np.inf)
    numbers = wide(found)
    with np.errstate(over="ignore", invalid="ignore"):  # the difference of infinities
        error = np.asarray(np.abs(numbers - expected))
        error /= np.maximum(tolerance, TINY)
    if not np.isfinite(error.max(initial=0.0)):
        is_open = ~np.isfinite(error)
        given = numbers[is_open]
        wanted = expected[is_open]
        allowed = tolerance[is_open]
        is_right = (given == wanted) | (np.isnan(given) & np.isnan(wanted)) | (allowed == np.inf)
        if found.dtype == F16:
            is_beyond = np.abs(wanted) + allowed >= F16_OVERFLOW
            is_right |= (given == np.copysign(np.inf, wanted)) & is_beyond
        error[is_open] = np.where(is_right, 0.0, np.inf)
    return error


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


@dataclass(frozen=True)
class ExactSums:
    """Sums of products of exact numbers, and what a kernel's partial sums reach, both in float64."""

    value: Float64
    largest: Float64  # of integers, whose sums are exact, it has no meaning


def exact_sums(a: Float64, b: Float64, element: str) -> ExactSums:
    """Returns A B of matrices or batches of matrices, where a kernel sums up in the type ``element``."""
    value = a @ b
    if element not in FLOATS:
        return ExactSums(value, value)
    if a.shape[-1] <= FEW_TERMS:
        return ExactSums(value, np.abs(a) @ np.abs(b))
    if element == "f64":
        of_rows = _scale(a, (-1,))
        of_columns = _scale(b, (-2,))
        norm = np.sqrt(np.square(a / of_rows) @ np.square(b / of_columns)) * of_rows * of_columns
    else:  # of narrower types no square is infinite
        norm = np.sqrt(np.square(a) @ np.square(b))
    return ExactSums(value, np.maximum(np.abs(value), PARTIAL_SUMS * norm))


def product_of_matrices(a: Bounded, b: Bounded, element: str, sums: SumsOf = exact_sums) -> Bounded:
    """Returns A B, of matrices or of batches of matrices, where a kernel sums up in the type ``element``.

    ``sums``: computes it of operands without errors, as ``exact_sums`` does.
    """
    with np.errstate(all="ignore"):
        error = np.zeros(())
        if np.any(a.error):
            error = a.error @ (np.abs(b.value) + b.error)
        if np.any(b.error):
            error = error + np.abs(a.value) @ b.error
        if np.any(error):
            sums = exact_sums
        made = sums(a.value, b.value, element)
        return _summed(made.value, error, made.largest, a.value.shape[-1], element)


def _scale(numbers: Float64, axes: Axes) -> Float64:
    """Returns the largest magnitude along ``axes``, whose extents become 1; 1 if all numbers are 0.

    Numbers divided by this scale can be squared without overflow.
    """
    largest = np.max(np.abs(numbers), axis=axes, keepdims=True, initial=0.0)
    return np.where(largest > 0.0, largest, 1.0)


def _summed(value: Float64, error: Float64, largest: Float64, count: int, element: str) -> Bounded:
    """Returns ``value``, sums of ``count`` terms, as ``Bounded`` with the roundings of a kernel's additions.

    ``error``: the sums of the terms' own errors; ``largest``: a bound of the magnitude of partial sums.
    """
    type_ = number_type(element)
    if element in FLOATS:
        error = error + sum_roundings(count) * type_.rounding * largest + count * type_.smallest
    return replace(rounded(value, error, element), terms=count)


def rounded(value: Float64, error: Float64, element: str, ulps: float = 1.0) -> Bounded:
    """Returns ``value``, itself not rounded, with its error after a kernel has rounded it to ``element``.

    The error is ``error``, the error before rounding, plus ``ulps`` times half a unit in the last place.
    Values too large for the type become infinite.
    """
    if element in FLOATS:
        type_ = number_type(element)
        if element == "f64" and ulps:
            ulps += 1.0  # the reference is rounded as well
        total = np.abs(value)
        is_usual = total.max(initial=0.0) <= type_.largest
        total *= ulps * type_.rounding
        total += type_.smallest
        total += error
        if is_usual and not np.isnan(total.max(initial=0.0)):
            return Bounded(value, total, element)
        error = total
        value = np.where(np.abs(value) > type_.largest, np.copysign(np.inf, value), value)
    # an infinite error, of a divisor that may be zero, or one times zero: any number is right
    error = np.where(np.isnan(error), np.inf, error)
    return Bounded(value, np.where(np.isfinite(value), error, 0.0), element)


def _add(a: Bounded, b: Bounded) -> Bounded:
    added = _added(a.value + b.value, a, b)
    if a.low is None and b.low is None:
        return added
    return replace(added, low=(a.lowest + b.lowest) * (1.0 - number_type(a.element).rounding))


def _subtract(a: Bounded, b: Bounded) -> Bounded:
    return _added(a.value - b.value, a, b)


def _added(value: Float64, a: Bounded, b: Bounded) -> Bounded:
    """Returns ``value``, the sum or difference of ``a`` and ``b``, as ``Bounded``.

    If an operand is a long sum, its error grows by that of the other operand's magnitude: a kernel may begin
    the sum with the other operand, which then takes part in each rounding.
    """
    error = a.error + b.error
    unit = number_type(a.element).rounding
    for sums, other in ((a, b), (b, a)):
        if sums.terms:
            error = error + sum_roundings(sums.terms) * unit * np.abs(other.value)
    return replace(rounded(value, error, a.element), terms=max(a.terms, b.terms))


def _multiply(a: Bounded, b: Bounded) -> Bounded:
    return rounded(a.value * b.value, _error_of_product(a, b), a.element)


def _error_of_product(a: Bounded, b: Bounded) -> Float64:
    """Returns the error of a * b before its rounding.

    0 if one factor is exactly zero and the other has an infinite error.
    """
    error = np.zeros(())
    for value, other in ((a.value, b), (np.abs(b.value) + b.error, a)):
        if np.any(other.error):
            part = np.abs(value) * other.error
            if np.isnan(part.max(initial=0.0)):
                part = np.where(np.isnan(part), 0.0, part)
            error = error + part
    return error


def _divide(a: Bounded, b: Bounded) -> Bounded:
    """Returns a / b as ``Bounded``.

    A divisor that overflows to infinity may be the type's largest number in a kernel: the error allows both.
    """
    largest = number_type(b.element).largest
    size = np.minimum(np.abs(b.value), largest)
    ratio = np.abs(a.value) / size
    least = np.maximum(size - b.error, 0.0)  # 0: the divisor's sign is not known
    error = (a.error + ratio * b.error) / least
    if b.low is not None:
        lower = (a.error + ratio * b.error) / (size + b.error)
        upper = (a.error + ratio * (size - b.low)) / b.low
        error = np.where(b.low > 0.0, np.maximum(lower, upper), error)
    error = np.where(np.abs(b.value) + b.error > largest, error + ratio, error)
    return rounded(a.value / b.value, np.where(np.isnan(error), 0.0, error), a.element)


def _power(base: Bounded, power: Bounded) -> Bounded:
    """Returns base ** power; the power is taken as exact."""
    exponent = power.value
    return _function(lambda x: np.power(x, exponent), lambda x, y: exponent * y / x)(base)


def _angle(a: Bounded, b: Bounded) -> Bounded:
    """Returns C's atan2(a, b), the angle of the point (b, a), as ``Bounded``."""
    distance = np.hypot(a.value, b.value)
    error = np.where(distance > 0, (a.error + b.error) / distance, 0.0)
    return rounded(np.arctan2(a.value, b.value), error, a.element, FORMULA_ULPS)


def _chosen(truth: Bounded, a: Bounded, b: Bounded) -> Bounded:
    """Returns ``a`` where ``truth`` is 1, else ``b``.

    Where the truth is uncertain, the error covers both if finite.
    """
    is_true = truth.value != 0
    error = np.where(is_true, a.error, b.error)
    either = np.abs(a.value - b.value) + np.maximum(a.error, b.error)
    error = np.where((truth.error > 0) & np.isfinite(either), either, error)
    return Bounded(np.where(is_true, a.value, b.value), error, a.element)


def _extreme(choose: Callable[[Float64, Float64], Float64]) -> Callable[[Bounded, Bounded], Bounded]:
    """Returns a function of two ``Bounded``: the maximum or minimum, with the larger of their errors."""
    return lambda a, b: Bounded(choose(a.value, b.value), np.maximum(a.error, b.error), a.element)


def _function(
    of: Callable[[Float64], Float64], slope: Callable[[Float64, Float64], Float64], ulps: float = FORMULA_ULPS
) -> Callable[[Bounded], Bounded]:
    """Returns an elementary function of a ``Bounded``, made from the numpy function ``of``.

    ``slope(x, y)``: the derivative at x, where y is ``of(x)``. ``ulps``: the error of a kernel's formula, in
    halves of a unit in the last place.
    """

    def apply_to(x: Bounded) -> Bounded:
        y = of(x.value)
        error = np.where(x.error > 0, np.abs(slope(x.value, y)) * x.error, 0.0)
        return rounded(y, np.where(np.isnan(error), 0.0, error), x.element, ulps)

    return apply_to


def _exponential(x: Bounded) -> Bounded:
    """Returns e to the power of x, with a positive lower bound ``low`` however large the error is."""
    type_ = number_type(x.element)
    low = np.exp(x.value - x.error) * (1.0 - FORMULA_ULPS * type_.rounding)
    made = _function(np.exp, lambda _, y: y)(x)
    return replace(made, low=np.minimum(low, type_.largest))


def _square_root(x: Bounded) -> Bounded:
    """Returns the square root of x; its error is the larger distance to the roots of x -+ its error."""
    y = np.sqrt(x.value)
    least = np.sqrt(np.maximum(x.value - x.error, 0.0))
    return rounded(y, np.maximum(y - least, np.sqrt(x.value + x.error) - y), x.element)


def _step(of: Callable[[Float64], Float64]) -> Callable[[Bounded], Bounded]:
    """Returns a function of a ``Bounded`` with jumps of 1, made from a numpy function such as np.floor.

    Where the operand's error may cross a jump, the result's error is 1, else 0.
    """

    def apply_to(x: Bounded) -> Bounded:
        y = of(x.value)
        is_near = (of(x.value - x.error) != y) | (of(x.value + x.error) != y)
        return Bounded(y, np.where(is_near & np.isfinite(y), 1.0, 0.0), x.element)

    return apply_to


def _test(of: Callable[[Float64], Any]) -> Callable[[Bounded], Bounded]:
    return lambda x: Bounded.exact(of(x.value), TRUTH)


def _erf_coefficients() -> list[Float64]:
    """Returns erf's Taylor coefficients of degrees 0 to ERF_DEGREE, each at all nodes from -6 to 6.

    They follow from erf'' = -2 x erf'.
    """
    nodes = np.arange(-ERF_END * ERF_NODES, ERF_END * ERF_NODES + 1) / ERF_NODES
    values = np.array(list(map(math.erf, nodes.tolist())))
    coefficients = [values, TWO_OVER_ROOT_PI * np.exp(-nodes * nodes)]
    for degree in range(ERF_DEGREE - 1):
        lower, last = coefficients[-2:]
        slope = nodes * (degree + 1) * last + degree * lower
        coefficients.append(-2.0 * slope / ((degree + 1) * (degree + 2)))
    return coefficients


ERF_COEFFICIENTS: Final = _erf_coefficients()


def _error_function(x: Float64) -> Float64:
    """Returns erf of each number, by the Taylor polynomial about the nearest multiple of 1/32."""
    near = np.clip(x, -ERF_END, ERF_END)  # beyond, erf is 1 or -1 in float64
    nodes = np.rint(near * ERF_NODES)
    offset = near - nodes / ERF_NODES
    index = np.nan_to_num(nodes).astype(np.int64) + ERF_END * ERF_NODES
    value = np.zeros_like(offset)
    for coefficients in reversed(ERF_COEFFICIENTS):
        value = value * offset + coefficients[index]
    return value


def _one(x: Float64, _: Float64) -> Float64:
    return np.ones_like(x)


FUNCTIONS: Final[Mapping[str, Callable[..., Bounded]]] = {
    "arith.addf": _add,
    "arith.subf": _subtract,
    "arith.mulf": _multiply,
    "arith.divf": _divide,
    "arith.negf": _function(np.negative, _one, 0.0),
    "arith.maximumf": _extreme(np.maximum),
    "arith.minimumf": _extreme(np.minimum),
    "arith.maxnumf": _extreme(np.fmax),
    "arith.minnumf": _extreme(np.fmin),
    "arith.select": _chosen,
    "math.fma": lambda x, y, z: _add(_multiply(x, y), z),
    "math.absf": _function(np.abs, _one, 0.0),
    "math.copysign": lambda a, b: Bounded(np.copysign(a.value, b.value), a.error, a.element),
    "math.exp": _exponential,
    "math.exp2": _function(np.exp2, lambda _, y: y * math.log(2)),
    "math.expm1": _function(np.expm1, lambda _, y: y + 1),
    "math.log": _function(np.log, lambda x, _: 1 / x),
    "math.log2": _function(np.log2, lambda x, _: 1 / (x * math.log(2))),
    "math.log10": _function(np.log10, lambda x, _: 1 / (x * math.log(10))),
    "math.log1p": _function(np.log1p, lambda x, _: 1 / (1 + x)),
    "math.erf": _function(_error_function, lambda x, _: TWO_OVER_ROOT_PI * np.exp(-x * x)),
    "math.sqrt": _square_root,
    "math.rsqrt": _function(lambda x: 1 / np.sqrt(x), lambda x, y: 0.5 * y / x),
    "math.powf": _power,
    "math.fpowi": _power,
    "math.sin": _function(np.sin, _one),
    "math.cos": _function(np.cos, _one),
    "math.tan": _function(np.tan, lambda _, y: 1 + y * y),
    "math.asin": _function(np.arcsin, lambda x, _: 1 / np.sqrt(1 - x * x)),
    "math.acos": _function(np.arccos, lambda x, _: 1 / np.sqrt(1 - x * x)),
    "math.atan": _function(np.arctan, lambda x, _: 1 / (1 + x * x)),
    "math.atan2": _angle,
    "math.sinh": _function(np.sinh, lambda x, _: np.cosh(x)),
    "math.cosh": _function(np.cosh, lambda x, _: np.sinh(x)),
    "math.tanh": _function(np.tanh, lambda _, y: 1 - y * y),
    "math.asinh": _function(np.arcsinh, lambda x, _: 1 / np.sqrt(1 + x * x)),
    "math.floor": _step(np.floor),
    "math.ceil": _step(np.ceil),
    "math.trunc": _step(np.trunc),
    "math.roundeven": _step(np.rint),
    "math.isnan": _test(np.isnan),
    "math.isinf": _test(np.isinf),
    "math.isfinite": _test(np.isfinite),
}
CONVERSIONS: Final = ("arith.extf", "arith.truncf", "arith.index_cast")


# Comparisons, whose predicates are MLIR's by number: of floats false for NaN up to "ordered", then true.
ORDERED: Final = 7
ALWAYS: Final = (ORDERED, 15)  # of numbers that are not NaN
FIRST_UNSIGNED: Final = 6
ORDERS: Final = (np.equal, np.greater, np.greater_equal, np.less, np.less_equal, np.not_equal)
FLOAT_ORDERS: Final = (None, *ORDERS, None, *ORDERS, None, None)
SIZES: Final = (np.less, np.less_equal, np.greater, np.greater_equal)
INTEGER_ORDERS: Final = (np.equal, np.not_equal, *SIZES, *SIZES)


def _compared_floats(predicate: int, a: Bounded, b: Bounded) -> Bounded:
    is_nan = np.isnan(a.value) | np.isnan(b.value)
    order = FLOAT_ORDERS[predicate]
    if order is None:
        is_true = np.full(is_nan.shape, predicate in ALWAYS)
        error = np.zeros(())
    else:
        is_true = order(a.value, b.value)
        error = _doubt(a, b)
    if predicate > ORDERED:
        is_true = is_true | is_nan
    else:
        is_true = is_true & ~is_nan
    return Bounded(is_true.astype(np.float64), error, TRUTH)


def _compared_integers(predicate: int, a: Bounded, b: Bounded) -> Bounded:
    left, right = (_integers(number) for number in (a, b))
    if predicate >= FIRST_UNSIGNED:
        left, right = (_unsigned(numbers, a.element) for numbers in (left, right))
    return Bounded(INTEGER_ORDERS[predicate](left, right).astype(np.float64), _doubt(a, b), TRUTH)


def _doubt(a: Bounded, b: Bounded) -> Float64:
    """Returns 1 where the errors of ``a`` and ``b`` may invert their comparison, else 0."""
    error = a.error + b.error
    return np.where((np.abs(a.value - b.value) <= error) & (error > 0), 1.0, 0.0)


COMPARISONS: Final[Mapping[str, Callable[[int, Bounded, Bounded], Bounded]]] = {
    "arith.cmpf": _compared_floats,
    "arith.cmpi": _compared_integers,
}


# Integers: sums and products wrap around in two's complement. They are exact but where they come from floats:
# of a float that may round to either of two integers, both are allowed.


def _sum_of_errors(a: Bounded, b: Bounded) -> Float64:
    return a.error + b.error


def _larger_error(a: Bounded, b: Bounded) -> Float64:
    return np.maximum(a.error, b.error)


def _unknown_unless_exact(a: Bounded, b: Bounded) -> Float64:
    return np.where(a.error + b.error > 0, np.inf, 0.0)


INTEGERS: Final[Mapping[str, tuple[Callable[[Int64, Int64], Int64], ErrorOf]]] = {
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
LOGIC: Final = ("arith.andi", "arith.ori", "arith.xori")
TO_FLOAT: Final = ("arith.sitofp", "arith.uitofp")
FROM_FLOAT: Final = ("arith.fptosi", "arith.fptoui")
OF_UNSIGNED: Final = ("arith.uitofp", "arith.extui")
INTEGER_CONVERSIONS: Final = (*TO_FLOAT, *FROM_FLOAT, "arith.extsi", "arith.extui", "arith.trunci")


def _of_integers(name: str, operands: Sequence[Bounded], element: str) -> Bounded:
    if element == TRUTH and name not in LOGIC:
        raise UsageError(f"fusion: found {name} of i1, allowed {', '.join(LOGIC)}")
    of, error_of = INTEGERS[name]
    a, b = operands
    is_exact = not np.any(a.error) and not np.any(b.error)
    error = np.zeros(()) if is_exact else error_of(a, b)
    return _wrapped(of(_integers(a), _integers(b)), error, element)


def _converted_integer(name: str, x: Bounded, element: str) -> Bounded:
    """Returns the result of an op of INTEGER_CONVERSIONS.

    Where an inexact float may be out of the integer's range, the error allows any integer.
    """
    if name in FROM_FLOAT:
        return _rounded_to_zero(x, element, is_signed=name == "arith.fptosi")
    numbers = _integers(x)
    if x.element == TRUTH:
        numbers = numbers if name in OF_UNSIGNED else -numbers
    elif name in OF_UNSIGNED:
        numbers = _unsigned(numbers, x.element)
    if name not in TO_FLOAT:
        return _wrapped(numbers, x.error, element)
    wide = numbers.astype(np.float64)
    exact = 1.0 / number_type(element).rounding  # up to here, every integer is a float
    made = rounded(wide, x.error, element)
    return Bounded(made.value, np.where(np.abs(wide) <= exact, x.error, made.error), element)


def _rounded_to_zero(x: Bounded, element: str, *, is_signed: bool) -> Bounded:
    bits = number_type(element).bits
    least, end = (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1)) if is_signed else (0.0, 2.0**bits)
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
    if not np.any(error):
        return Bounded(value, error, element)
    may_wrap = (error > 0) & (np.abs(value) + error >= 2.0 ** (bits - 1))
    return Bounded(value, np.where(may_wrap, 2.0**bits, error), element)


def _integers(x: Bounded) -> Int64:
    return x.value.astype(np.int64)


def _unsigned(numbers: Int64, element: str) -> Int64:
    bits = number_type(element).bits
    if bits < 64:
        return numbers & ((1 << bits) - 1)
    return numbers
