"""Numbers of about 106 bits as unevaluated sums of two float64 values, and the power that needs them.

A sum ``high + low`` whose low part is below half a unit in the last place of the high part: Dekker, "A
floating-point technique for extending the available precision", 1971; Joldes, Muller, Popescu, "Tight and
rigorous error bounds for basic building blocks of double-word arithmetic", 2017. ``fma`` gives the rounding
error of a product.
"""

import math
from dataclasses import dataclass

from tuner.mlir.math.float64_formulas import at_the_edges, exp2, mantissa_of
from tuner.mlir.math.op_expressions import Term

TWO_OVER_LN2 = (2.8853900817779268, 4.0710547481862066e-17)  # 2 / ln 2
THIRD = (1 / 3, 1.850371707708594e-17)  # 1 / 3
ATANH = tuple(1 / (2 * power + 5) for power in range(10))  # of atanh(s) / s, from s**4 / 5 on, in s**2
LARGEST_EXPONENT = 4096.0  # 2**x is 0 or infinity before; products with it are finite


@dataclass(frozen=True)
class DoubleWord:
    """A number as the sum of two float64 terms; methods create ops at the current insertion point."""

    high: Term
    low: Term

    def __mul__(self, other: "DoubleWord") -> "DoubleWord":
        """Creates the product; relative error up to 2**-102."""
        high = self.high * other.high
        low = self.high.fma(other.high, high * -1.0)
        low = self.high.fma(other.low, self.low.fma(other.high, low))
        return _fast_sum(high, low)

    def plus(self, number: Term) -> "DoubleWord":
        """Creates the sum with a float64 that is 0, or not smaller in size than the high part."""
        sum_ = _fast_sum(number, self.high)
        return _fast_sum(sum_.high, sum_.low + self.low)


def power(x: Term, y: Term) -> Term:
    """Creates ops for x**y of two float64 terms and returns the result; error up to 2 ulp.

    Computed as 2**(y * log2(x)); the exponent has 64 bits or more. Special cases follow C99, annex F.
    """
    magnitude = power_of_size(x, y)
    half = y * 0.5
    half_is_whole, is_whole = (each.equals(each.math("roundeven")) for each in (half, y))
    of_whole = magnitude.math("copysign", x).replaced(half_is_whole, magnitude)
    of_fraction = magnitude.replaced((x < 0.0) & (x > -math.inf), math.nan)
    return of_fraction.replaced(is_whole, of_whole)


def power_of_size(x: Term, y: Term) -> Term:
    """Creates ops for abs(x)**y of two float64 terms and returns the result; error up to 2 ulp."""
    size = x.math("absf")
    logarithm = _log2(size)
    high = at_the_edges(size, logarithm.high)
    exponent = high * y
    clamped = exponent.replaced(exponent > LARGEST_EXPONENT, LARGEST_EXPONENT)
    clamped = clamped.replaced(exponent < -LARGEST_EXPONENT, -LARGEST_EXPONENT)
    low = logarithm.low.fma(y, high.fma(y, exponent * -1.0))
    low = low.constant(0.0).replaced(exponent.math("absf") < LARGEST_EXPONENT, low)
    rounded = exp2(clamped)
    result = (rounded * low).fma(math.log(2), rounded)  # 2**low is 1 + low * ln 2
    result = result.replaced(rounded.equals(math.inf), math.inf)
    return result.replaced(size.equals(1.0), 1.0).replaced(y.equals(0.0), 1.0)


def _log2(x: Term) -> DoubleWord:
    """Returns log2 of a positive finite float64; relative error up to 2**-64."""
    exponent, mantissa = mantissa_of(x)
    below, above = mantissa - 1.0, mantissa + 1.0
    lost = mantissa - (above - 1.0)  # of the sum
    ratio = below / above
    rest = ratio.fma(above * -1.0, below) - ratio * lost
    quotient = DoubleWord(ratio, rest / above)
    square = quotient * quotient
    tail = square.high * square.high * square.high.polynomial(ATANH)
    third = square * DoubleWord(*(ratio.constant(part) for part in THIRD))
    one = ratio.constant(1.0)
    series = DoubleWord(third.high, third.low + tail).plus(one)  # atanh(s) / s
    factor = DoubleWord(*(ratio.constant(part) for part in TWO_OVER_LN2))
    return (quotient * series * factor).plus(exponent)


def _fast_sum(larger: Term, smaller: Term) -> DoubleWord:
    """Returns a sum with its rounding error: Dekker's Fast2Sum, exact where |larger| >= |smaller| or is 0."""
    high = larger + smaller
    return DoubleWord(high, smaller - (high - larger))
