"""Integer operations in bodies of linalg ops, on arrays: sums and products wrap around in two's complement.

Integers are exact but where they come from floats: of a float that may round to either of two integers, both
are allowed. Values of i1 are 0 and 1.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tuner.core.element_types import number_type
from tuner.mlir.reference.running_error import Bounded, Float64, Truth, rounded

Int64 = npt.NDArray[np.int64]
ErrorOf = Callable[[Bounded, Bounded], Float64]
TO_FLOAT = ("arith.sitofp", "arith.uitofp")
FROM_FLOAT = ("arith.fptosi", "arith.fptoui")
OF_UNSIGNED = ("arith.uitofp", "arith.extui")
INTEGER_CONVERSIONS = (*TO_FLOAT, *FROM_FLOAT, "arith.extsi", "arith.extui", "arith.trunci")
UNSIGNED_FROM = 6  # predicates of arith.cmpi from here on
# By the number of the predicate: eq, ne, slt, sle, sgt, sge, ult, ule, ugt, uge.
COMPARISONS: tuple[Callable[[Int64, Int64], Any], ...] = (
    *(np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal),
    *(np.less, np.less_equal, np.greater, np.greater_equal),
)


def _sum_of_errors(a: Bounded, b: Bounded) -> Float64:
    return a.error + b.error


def _error_of_product(a: Bounded, b: Bounded) -> Float64:
    return np.abs(a.value) * b.error + np.abs(b.value) * a.error + a.error * b.error


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
    """Returns the result of one of INTEGERS, of a type wider than i1."""
    of, error_of = INTEGERS[name]
    return _wrapped(of(_integers(a), _integers(b)), error_of(a, b), element)


def compared_integers(predicate: int, a: Bounded, b: Bounded, element: str) -> Truth:
    """Returns the comparison of a predicate of ``arith.cmpi``, and where errors may invert it."""
    left, right = (_integers(each) for each in (a, b))
    error = a.error + b.error
    uncertain = (np.abs(left - right) <= error) & (error > 0)
    if predicate >= UNSIGNED_FROM:
        left, right = (_unsigned(each, element) for each in (left, right))
    return Truth(COMPARISONS[predicate](left, right), np.broadcast_to(uncertain, np.shape(left - right)))


def converted_integer(name: str, x: Bounded, source: str, element: str) -> Bounded:
    """Returns the result of one of INTEGER_CONVERSIONS, of ``source`` to ``element``.

    What a float gives that no integer of the type is near to is undefined: any number is allowed.
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
    exact = 2.0 ** ((number_type(element).fraction_bits or 0) + 1)  # up to here, every integer is a float
    made = rounded(wide, x.error, element)
    return Bounded(made.value, np.where(np.abs(wide) <= exact, x.error, made.error), element)


def _rounded_to_zero(x: Bounded, element: str, *, is_signed: bool) -> Bounded:
    bits = number_type(element).bits
    least, end = (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1)) if is_signed else (0.0, 2.0**bits)
    with np.errstate(all="ignore"):
        value, low, high = (np.trunc(each) for each in (x.value, x.value - x.error, x.value + x.error))
        is_known = (low >= least) & (high < end)  # false for NaN
        error = np.maximum(high - value, value - low)
    made = _wrapped(np.where(is_known, value, 0.0).astype(np.int64), np.where(is_known, error, 0.0), element)
    return Bounded(made.value, np.where(is_known, made.error, 2.0**bits), element)


def _wrapped(numbers: Int64, error: Float64, element: str) -> Bounded:
    """Returns integers as those of a type; where an error may lead to one that wraps, any is allowed."""
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
    return numbers & ((1 << bits) - 1) if bits < 64 else numbers
