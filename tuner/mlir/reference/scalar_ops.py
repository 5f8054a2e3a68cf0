"""The operations in bodies of linalg ops, on arrays with error bounds; other operations are refused."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tuner.core.errors import UsageError
from tuner.mlir.bindings import Op, ir
from tuner.mlir.reference.integer_ops import (
    INTEGER_CONVERSIONS,
    INTEGERS,
    compared_integers,
    converted_integer,
    integer_op,
)
from tuner.mlir.reference.running_error import (
    Bounded,
    Float64,
    Truth,
    add,
    angle,
    chosen,
    divide,
    extreme,
    function,
    multiply,
    rounded,
    step,
    subtract,
)

Number = Bounded | Truth


def _each(of: Callable[[float], float]) -> Callable[[Float64], Float64]:
    """Returns a function of arrays, element by element, of a function of ``math``."""
    return np.vectorize(of, otypes=[np.float64])


def _exp2_slope(_: Float64, y: Float64) -> Float64:
    return y * math.log(2)


TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)
UNARY: dict[str, Callable[[Bounded], Bounded]] = {
    "math.exp": function(np.exp, lambda _, y: y),
    "math.exp2": function(np.exp2, _exp2_slope),
    "math.expm1": function(np.expm1, lambda _, y: y + 1),
    "math.log": function(np.log, lambda x, _: 1 / x),
    "math.log2": function(np.log2, lambda x, _: 1 / (x * math.log(2))),
    "math.log10": function(np.log10, lambda x, _: 1 / (x * math.log(10))),
    "math.log1p": function(np.log1p, lambda x, _: 1 / (1 + x)),
    "math.tanh": function(np.tanh, lambda _, y: 1 - y * y),
    "math.erf": function(_each(math.erf), lambda x, _: TWO_OVER_ROOT_PI * np.exp(-x * x)),
    "math.sqrt": function(np.sqrt, lambda _, y: 0.5 / y, 1.0),
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
COMPARISONS: dict[int, Callable[[Float64, Float64], Any]] = {
    1: np.equal,
    2: np.greater,
    3: np.greater_equal,
    4: np.less,
    5: np.less_equal,
}
ALL_TRUE, ALL_FALSE, ORDERED, NOT_EQUAL, UNORDERED_FROM, NEVER_EQUAL, NAN = 15, 0, 7, 6, 8, 13, 14


def apply(op: Op, operands: list[Number]) -> Number:
    """Returns the result of an op of a body, of arrays for its operands.

    Raises UsageError for an op that is not known here.
    """
    name, element = op.name, str(op.results[0].type)
    if name in UNARY:
        return UNARY[name](_bounded(operands[0]))
    if name in BINARY:
        return BINARY[name](_bounded(operands[0]), _bounded(operands[1]))
    if name in CONVERSIONS or name in INTEGER_CONVERSIONS:
        return _converted(op, _bounded(operands[0]), element)
    if name in POWERS:
        return _power(_bounded(operands[0]), _bounded(operands[1]))
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
    raise UsageError(f"group: found {name}, allowed {', '.join(known)}")


def compared(predicate: int, a: Bounded, b: Bounded) -> Truth:
    """Returns the comparison of a predicate of ``arith.cmpf``, and where errors may invert it."""
    with np.errstate(all="ignore"):
        is_nan = np.isnan(a.value) | np.isnan(b.value)
        near = np.abs(a.value - b.value) <= a.error + b.error
        uncertain = near & (a.error + b.error > 0)
        if predicate in (ALL_FALSE, ALL_TRUE):
            return Truth(np.full(is_nan.shape, predicate == ALL_TRUE), np.zeros_like(is_nan))
        if predicate in (ORDERED, NAN):
            return Truth(is_nan == (predicate == NAN), np.zeros_like(is_nan))
        if predicate in (NOT_EQUAL, NEVER_EQUAL):
            value = np.not_equal(a.value, b.value) & ~is_nan
        else:
            value = COMPARISONS[predicate if predicate < ORDERED else predicate - ORDERED](a.value, b.value)
        return Truth(value | is_nan if predicate > ORDERED else value & ~is_nan, uncertain)


def _bounded(number: Number) -> Bounded:
    if isinstance(number, Truth):
        return Bounded.exact(number.value.astype(np.float64), "i1")
    return number


def _truth(number: Number) -> Truth:
    return number if isinstance(number, Truth) else _certain(number.value != 0)


def _certain(value: Any) -> Truth:
    return Truth(value, np.zeros_like(value))


def _converted(op: Op, x: Bounded, element: str) -> Bounded:
    if op.name in INTEGER_CONVERSIONS:
        return converted_integer(op.name, x, str(op.operands[0].type), element)
    return rounded(x.value, x.error, element)


def _comparison(op: Op, a: Bounded, b: Bounded) -> Truth:
    predicate = ir.IntegerAttr(op.attributes["predicate"]).value
    if op.name == "arith.cmpi":
        return compared_integers(predicate, a, b, str(op.operands[0].type))
    return compared(predicate, a, b)


def _of_integers(name: str, operands: list[Number], element: str) -> Number:
    if element != "i1":
        return integer_op(name, _bounded(operands[0]), _bounded(operands[1]), element)
    if name not in LOGIC:
        raise UsageError(f"group: found {name} of i1, allowed {', '.join(sorted(LOGIC))}")
    a, b = map(_truth, operands)
    return Truth(LOGIC[name](a.value, b.value), a.is_uncertain | b.is_uncertain)


def _power(x: Bounded, y: Bounded) -> Bounded:
    """Returns x**y; the exponent is taken as exact."""
    power = function(lambda base: np.power(base, y.value), lambda base, z: y.value * z / base)
    return power(x)
