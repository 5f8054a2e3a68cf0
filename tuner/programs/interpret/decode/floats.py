"""Floating-point arithmetic, rounded once to the type of the result; fast-math flags permit this."""

import operator
from collections.abc import Callable

import numpy as np

from tuner.mlir.bindings import Op, ir
from tuner.programs.interpret.decode.steps import elementwise, step_of
from tuner.programs.interpret.element_types import Array
from tuner.programs.interpret.frame import Step
from tuner.programs.interpret.scope import Decode, FunctionScope

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
SPLIT = 2.0**27 + 1  # splits a float64 into two halves; Dekker, A floating-point technique, 1971


def extreme(function: Callable[[Array, Array], Array], *, is_max: bool) -> Callable[[Array, Array], Array]:
    """Returns ``function``, a numpy minimum or maximum, changed so that -0 is less than +0.

    ``is_max``: True if ``function`` is a maximum.
    """

    def compute(a: Array, b: Array) -> Array:
        first = np.signbit(a) != is_max
        return np.where(a == b, np.where(first, a, b), function(a, b))

    return compute


BINARY: dict[str, Callable[[Array, Array], Array]] = {
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


def comparison(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``arith.cmpf``: compares floats elementwise by the operation's predicate.

    A step is a function that executes ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA
    values to frame slots.
    """
    return step_of(op, scope, predicate(ir.IntegerAttr(op.attributes["predicate"]).value))


def predicate(number: int) -> Callable[[Array, Array], Array]:
    """Returns the comparison of float arrays for a number of MLIR's ``arith.cmpf`` predicates.

    0: false; 1 to 6: oeq, ogt, oge, olt, ole, one; 7: ord; 8 to 13: ueq, ugt, uge, ult, ule, une; 14: uno;
    15: true.
    """
    if number in (0, 15):
        return lambda a, b: np.broadcast_to(np.array(number == 15), np.broadcast_shapes(a.shape, b.shape))
    if number == 7:
        return lambda a, b: ~(np.isnan(a) | np.isnan(b))
    if number == 14:
        return lambda a, b: np.isnan(a) | np.isnan(b)
    if number < 7:
        return ORDERED[number - 1]
    # ueq, ugt, uge, ult, ule, une: also true for NaN
    compare = ORDERED[number - 8]
    return lambda a, b: compare(a, b) | np.isnan(a) | np.isnan(b)


def fused(a: Array, b: Array, c: Array) -> Array:
    """Returns ``a * b + c`` rounded once, elementwise, in the type of ``a``.

    For float64 this is emulated by error-free transforms and may differ from an FMA in the last bit.
    """
    if a.dtype == F64:
        return _fused_double(a, b, c)
    wide = [each.astype(F64) for each in (a, b, c)]
    product = wide[0] * wide[1]  # exact: 48 bits at most
    total = product + wide[2]
    lost = _sum_error(product, wide[2], total)
    # Rounding to odd makes the second rounding correct: Boldo and Melquiond, Emulation of FMA, 2008
    bits = total.view(np.int64)
    is_even = ((bits & 1) == 0) & (lost != 0) & np.isfinite(total)
    away = (lost > 0) == (total > 0)
    return np.where(is_even, (bits + np.where(away, 1, -1)).view(F64), total).astype(a.dtype)


def _fused_double(a: Array, b: Array, c: Array) -> Array:
    product = a * b
    total = product + c
    error = _product_error(a, b, product) + _sum_error(product, c, total)
    better = total + error
    return np.where(np.isfinite(better), better, total)


def _sum_error(a: Array, b: Array, total: Array) -> Array:
    """Returns the rounding error of a sum; Knuth, The Art of Computer Programming 2, 4.2.2."""
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


DECODERS: dict[str, Decode] = {
    **{f"arith.{name}": elementwise(function) for name, function in BINARY.items()},
    "arith.negf": elementwise(operator.neg),
    "arith.cmpf": comparison,
    "math.fma": elementwise(fused),
    "vector.fma": elementwise(fused),
}
