"""Fused multiply-add with one rounding, emulated in float64 by error-free transformations."""

from fractions import Fraction

import numpy as np

from tuner.simulator.ptx.dtypes import Array
from tuner.simulator.ptx.numbers.rounding import narrow_sum, needs_odd_f32, to_odd

SPLITTER = float(2**27 + 1)  # Veltkamp's constant: splits a float64 into two halves of 26 bits
SAFE_LOW, SAFE_HIGH = 2.0**-450, 2.0**450  # products of factors in this range neither overflow nor lose bits


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Returns (a + b rounded, its exact rounding error), elementwise.

    2Sum: Knuth, TAOCP volume 2, 4.2.2, theorem B.
    """
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Returns (a * b rounded, its exact rounding error), elementwise, for float64.

    TwoProduct: Dekker 1971, with Veltkamp's split. Exact for 0 and for factors with magnitudes from 2**-450
    to 2**450; the error of others may be inexact or NaN.
    """
    product = a * b
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    error = a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)
    return product, error


def _halves(value: Array) -> tuple[Array, Array]:
    scaled = SPLITTER * value
    high = scaled - (scaled - value)
    return high, value - high


def fma(a: Array, b: Array, c: Array) -> Array:
    """Returns a * b + c, elementwise, rounded once to the type of the operands: f16, bf16, f32 or f64."""
    dtype = a.dtype
    if dtype == np.float64:
        return _fma_f64(a, b, c)
    product = a.astype(np.float64) * b.astype(np.float64)  # exact: at most 48 bits
    if dtype == np.float32:
        return _fma_f32(product, c.astype(np.float64))
    total, error = two_sum(product, c.astype(np.float64))
    return narrow_sum(total, error, dtype)


def _fma_f32(product: Array, addend: Array) -> Array:
    total = product + addend
    risky = needs_odd_f32(total)
    if not risky.any():
        return total.astype(np.float32)
    exact, error = two_sum(product, addend)
    return np.where(risky, to_odd(exact, error), total).astype(np.float32)


def _fma_f64(a: Array, b: Array, c: Array) -> Array:
    """Returns a * b + c rounded once, emulated without hardware FMA.

    Algorithm: Boldo and Melquiond, "Emulation of a FMA and Correctly Rounded Sums" (2008).
    """
    a, b, c = np.broadcast_arrays(a, b, c)
    high, low = two_product(a, b)
    sum_high, sum_low = two_sum(c, low)
    value, rest = two_sum(high, sum_high)
    result = value + to_odd(*two_sum(sum_low, rest))
    unsafe = _is_unsafe(a) | _is_unsafe(b) | _is_unsafe(c)
    return _fma_by_fractions(a, b, c, result, unsafe) if unsafe.any() else result


def _is_unsafe(value: Array) -> Array:
    size = np.abs(value)
    is_safe: Array = ((size > SAFE_LOW) & (size < SAFE_HIGH)) | (value == 0)
    return ~is_safe


def _fma_by_fractions(a: Array, b: Array, c: Array, result: Array, where: Array) -> Array:
    """Returns ``result`` with the lanes ``where`` recomputed in rational arithmetic.

    Lanes with an operand that is not finite, or with the exact result 0, are computed as ``a * b + c`` in
    floats.
    """
    result = np.array(result)
    for lane in np.flatnonzero(where):
        x, y, z = float(a[lane]), float(b[lane]), float(c[lane])
        if not np.isfinite([x, y, z]).all():
            result[lane] = a[lane] * b[lane] + c[lane]
            continue
        exact = Fraction(x) * Fraction(y) + Fraction(z)
        result[lane] = _nearest(exact) if exact else a[lane] * b[lane] + c[lane]
    return result


def _nearest(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return float("inf") if exact > 0 else float("-inf")
