"""The math dialect: floats are computed in float64, then rounded to the type of the result."""

import math
from collections.abc import Callable

import numpy as np

from tuner.mlir.bindings import Op
from tuner.programs.interpret.decode.steps import elementwise
from tuner.programs.interpret.element_types import BOOL, Array, signed, unsigned
from tuner.programs.interpret.frame import LaneFrame, Step
from tuner.programs.interpret.scope import Decode, FunctionScope

F64 = np.dtype(np.float64)
Function = Callable[..., Array]
BITS_OF_BYTE = np.array([number.bit_count() for number in range(256)], np.uint8)


def _each(function: Callable[[float], float]) -> Function:
    """Returns a scalar function of Python's math module as a function of arrays."""
    over = np.frompyfunc(function, 1, 1)
    return lambda values: np.asarray(over(values)).astype(F64)


def _round_half_away(values: Array) -> Array:
    whole = np.trunc(values)
    return np.where(np.abs(values - whole) >= 0.5, whole + np.sign(values), whole)


FLOATS: dict[str, Function] = {
    **{name: getattr(np, name) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{name: getattr(np, name) for name in ("exp", "exp2", "expm1", "log", "log10", "log1p", "log2")},
    **{name: getattr(np, name) for name in ("sqrt", "cbrt", "ceil", "floor", "trunc")},
    **{f"a{name}": getattr(np, f"arc{name}") for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "atan2": np.arctan2,
    "absf": np.abs,
    "copysign": np.copysign,
    "powf": np.power,
    "rsqrt": lambda values: 1 / np.sqrt(values),
    "erf": _each(math.erf),
    "erfc": _each(math.erfc),
    "round": _round_half_away,
    "roundeven": np.rint,
    "clampf": lambda values, low, high: np.minimum(np.maximum(values, low), high),
}
TESTS: dict[str, Function] = {
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "isnormal": lambda values: np.isfinite(values) & (np.abs(values) >= _smallest_normal(values)),
}


def in_double(function: Function) -> Function:
    """Returns ``function`` computed in float64, with its result rounded to the type of its first argument."""

    def compute(*values: Array) -> Array:
        found: Array = function(*(each.astype(F64) for each in values))
        rounded: Array = found.astype(values[0].dtype)
        return rounded

    return compute


def _smallest_normal(values: Array) -> float:
    if values.dtype.name == "bfloat16":
        return 2.0**-126
    return float(np.finfo(values.dtype).smallest_normal)


def ones(values: Array) -> Array:
    """Returns the number of set bits (population count) of each integer, in the type of ``values``."""
    bits = np.ascontiguousarray(unsigned(values))
    octets = bits.view(np.uint8).reshape(*bits.shape, bits.itemsize)
    counts: Array = BITS_OF_BYTE[octets].sum(-1)
    return counts.astype(values.dtype)


def leading_zeros(values: Array) -> Array:
    """Returns the number of zero bits above each integer's highest set bit; for 0, the width of its type."""
    bits = unsigned(values).copy()
    width = 1 if values.dtype == BOOL else 8 * bits.itemsize
    shift = 1
    while shift < width:
        bits |= bits >> bits.dtype.type(shift)
        shift *= 2
    return (width - ones(bits).astype(np.int64)).astype(values.dtype)


def trailing_zeros(values: Array) -> Array:
    """Returns the number of zero bits below each integer's lowest set bit; for 0, the width of its type."""
    bits = unsigned(values)
    width = 1 if values.dtype == BOOL else 8 * bits.itemsize
    one = bits.dtype.type(1)
    below = ones((bits & (~bits + one)) - one).astype(np.int64)
    return np.minimum(below, width).astype(values.dtype)


def integer_power(base: Array, exponent: Array) -> Array:
    """Returns ``base ** exponent`` of integer arrays with wrap-around, in the type of ``base``.

    For a negative exponent, returns the reciprocal rounded towards zero: 0 unless the base is 1 or -1.
    """
    result, factor, left = np.ones_like(base), base, np.where(exponent < 0, 0, exponent)
    result, factor = np.broadcast_arrays(result, factor)
    while left.any():
        result = np.where(left & 1, result * factor, result)
        factor, left = factor * factor, left >> 1
    inverse = np.where(base == -1, np.where(exponent & 1, -1, 1), np.where(base == 1, 1, 0))
    return np.where(exponent < 0, inverse, result).astype(base.dtype)


def sine_and_cosine(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``math.sincos``, which has two results; computed in float64 and rounded.

    A step is a function that executes ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA
    values to frame slots.
    """
    (source,), (sine, cosine) = scope.slots(op.operands), scope.slots(op.results)

    def step(frame: LaneFrame) -> None:
        values = frame.values[source]
        frame.values[sine], frame.values[cosine] = in_double(np.sin)(values), in_double(np.cos)(values)

    return step


DECODERS: dict[str, Decode] = {
    **{f"math.{name}": elementwise(in_double(function)) for name, function in FLOATS.items()},
    **{f"math.{name}": elementwise(function) for name, function in TESTS.items()},
    "math.fpowi": elementwise(in_double(np.power)),
    "math.ipowi": elementwise(integer_power),
    "math.absi": elementwise(lambda values: np.abs(signed(values)).astype(values.dtype)),
    "math.ctpop": elementwise(ones),
    "math.ctlz": elementwise(leading_zeros),
    "math.cttz": elementwise(trailing_zeros),
    "math.sincos": sine_and_cosine,
}
