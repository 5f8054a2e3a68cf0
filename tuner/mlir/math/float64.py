"""Elementary functions of float64, in operations that every GPU has; methods in comments.

A function takes terms (``expressions.Term``) and creates arith and math ops at the insertion point. Its
docstring has the largest error that tests/mlir/math/test_float64.py allows (for erf, 1 ulp less: the
reference may be off by 1).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from tuner.mlir.bindings import ir
from tuner.mlir.ir.building import create, value
from tuner.mlir.math.expressions import Term

# Arguments are reduced as in ``tuner.mlir.math.float32``. Polynomials are Taylor's, of which the next term is
# below 2**-54 of the result, except those of erf: tuner's, interpolated at Chebyshev nodes in 120 digits and
# rounded to float64; the comment of each has the error that it causes.
FRACTION_BITS = 52
BIAS = 1023
ROUNDER = 1.5 * 2**FRACTION_BITS  # x + ROUNDER has the nearest integer to x in its low bits
TINY = 2.0**-54  # below this, expm1(x) and log1p(x) are x
LOG2_E = math.log2(math.e)
LOG10_E = math.log10(math.e)
# Constants in two parts (Cody and Waite): the high part has 32 bits; its product with an exponent is exact.
LN2_HIGH = 0.6931471803691238
LN2_LOW = 1.9082149292705877e-10
LOG10_2_HIGH = 0.3010299955494702
LOG10_2_LOW = 1.1451100898021838e-10
# (exp(r) - 1 - r) / r**2 for |r| <= log(2) / 2
EXPM1 = tuple(1 / math.factorial(power + 2) for power in range(13))
# (log(1 + f) - 2 * s) / (2 * s**3) in s**2, where s = f / (2 + f), |s| <= 0.172
ATANH = tuple(1 / (2 * power + 3) for power in range(11))
# erf(x) / x - 1 in x**2 for |x| <= 0.92; 2**-55.6
ERF = (
    *(0.1283791670955126, -0.3761263890318371, 0.11283791670952752, -0.026866170644614874),
    *(0.005223977619633974, -0.0008548326637493861, 0.00012055316694467641, -1.4925196720023707e-05),
    *(1.6453650630829905e-06, -1.626078532748755e-07, 1.396821713365065e-08, -8.304169053509212e-10),
)
# erf is computed by erfc from the first on, and 1 from the second on
ERF_THRESHOLD = 0.92
ERF_END = 6.0
# erfc(x) * exp(x**2) * (1 + 2 * x) in (x - CENTER) / (x + CENTER), Shepherd and Laframboise 1981; 2**-54.8
CENTER = 2.25
ERFC = (
    *(1.2709799230171555, -0.1102556159430126, -0.13078010182999833, 0.16525643251551628),
    *(-0.0831325370442707, 0.011441014956230695, 0.008093641172943587, -0.0026191113708820286),
    *(-0.0011735125225449878, 0.00041201521715230905, 0.00025105252735490766, -4.425151490804731e-05),
    *(-5.922744533799974e-05, -3.7232826170624953e-06, 1.1022494174291283e-05, 3.0886486051584095e-06),
)
TWO_OVER_LN2 = (2.8853900817779268, 4.0710547481862066e-17)  # 2 / ln 2
THIRD = (1 / 3, 1.850371707708594e-17)  # 1 / 3
LARGEST_EXPONENT = 4096.0  # 2**x is 0 or infinity long before this x; products with this x are finite
LARGE_HYPERBOLIC = 22.0  # from here on sinh and cosh are e**abs(x) / 2
SQUARE_LARGE = 2.0**28  # from here on x**2 + 1 is x**2
HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)  # pi / 2 in three parts
LARGE_ANGLE = 2.0**32  # below this, a product with 2 / pi is off by less than 2**-19
WORD_BITS = 32
FIRST_BIT = WORD_BITS.bit_length() - 1  # of the index of a word in the index of a bit
WORDS_BIAS = 1023 + FRACTION_BITS  # of the exponent of a float64 read as an integer of 53 bits
WORD = 2**WORD_BITS - 1
FRACTION = 2**FRACTION_BITS - 1
# floor(2**1182 * 2 / pi): in 38 words of 32 bits, 34 zeros and the first bits of 2 / pi
TWO_OVER_PI = int(
    "28be60db9391054a7f09d5f47d4d377036d8a5664f10e4107f9458eaf7aef1586dc91b8e909374b801924bba82746487"
    "3f877ac72c4a69cfba208d7d4baed1213a671c09ad17df904e64758e60d4ce7d272117e2ef7e4a0ec7fe25fff7816603"
    "fbcbc462d6829b47db4d9fb3c9f2c26dd3d18fd9a797fa8b5d49eeb1faf97c5ecf41ce7de294a4ba9afed7ec47e35742"
    "1580cc11",
    16,
)
# words of TWO_OVER_PI, and those of them that count for one exponent
TABLE_WORDS = 38
WINDOW_WORDS = 6
# (atan(z) - z) / z**3 in z**2 for |z| <= tan(pi / 8); 2**-56.9
ATAN = (
    *(-0.3333333333333333, 0.19999999999995513, -0.1428571428466518, 0.11111111015146714),
    *(-0.0909090457366906, 0.07692183087342026, -0.06664509989818045, 0.058581362519061465),
    *(-0.05085383488842831, 0.03922974453661223, -0.019174543572021332),
)
TANGENT = math.tan(math.pi / 8)


def exp(x: Term) -> Term:
    """Creates ops for e**x of a float64 ``x`` and returns the result; error up to 1 ulp."""
    exponent, fraction = _reduced(between(x, -746, 710))  # outside of this range: 0 and infinity
    return _scaled(fraction + 1.0, exponent)


def exp2(x: Term) -> Term:
    """Creates ops for 2**x of a float64 ``x`` and returns the result; error up to 1 ulp."""
    clamped = between(x, -1076, 1025)
    rounded = clamped + ROUNDER
    rest = (clamped - (rounded - ROUNDER)) * math.log(2)
    return _scaled(_expm1_near_zero(rest) + 1.0, _whole(rounded))


def expm1(x: Term) -> Term:
    """Creates ops for e**x - 1 of a float64 ``x`` and returns the result; error up to 2 ulp."""
    exponent, fraction = _reduced(between(x, -40, 710))  # outside of this range: -1 and infinity
    half = _power_of_two(exponent - 1)
    return (fraction.fma(half, half - 0.5) * 2.0).replaced(_is_tiny(x), x)


def tanh(x: Term) -> Term:
    """Creates ops for the hyperbolic tangent of a float64 ``x``; error up to 3 ulp."""
    power = expm1(at_most(x.math("absf"), 22.0) * 2.0)  # above 22 the result is 1
    return (power / (power + 2.0)).math("copysign", x)


def erf(x: Term) -> Term:
    """Creates ops for the error function of a float64 ``x`` and returns the result; error up to 2 ulp."""
    size = x.math("absf")
    near = (size * size).polynomial(ERF).fma(size, size)
    clamped = at_most(size, ERF_END)
    ratio = (clamped - CENTER) / (clamped + CENTER)
    tail = exp(clamped * clamped * -1.0) * ratio.polynomial(ERFC) / (clamped * 2.0 + 1.0)
    far = size.constant(1.0) - tail
    return far.replaced(size < ERF_THRESHOLD, near).math("copysign", x)


def log(x: Term) -> Term:
    """Creates the natural logarithm of a float64; error up to 1 ulp; NaN for x < 0, -inf for 0."""
    exponent, fraction = _mantissa(x)
    return at_the_edges(x, _sum(exponent, fraction, exponent * LN2_LOW))


def log2(x: Term) -> Term:
    """Creates the logarithm to base 2 of a float64; error up to 2 ulp; NaN for x < 0, -inf for 0."""
    exponent, fraction = _mantissa(x)
    return at_the_edges(x, _log1p(fraction).fma(LOG2_E, exponent))


def log10(x: Term) -> Term:
    """Creates the logarithm to base 10 of a float64; error up to 2 ulp; NaN for x < 0, -inf for 0."""
    exponent, fraction = _mantissa(x)
    rest = exponent.fma(LOG10_2_LOW, _log1p(fraction) * LOG10_E)
    return at_the_edges(x, exponent.fma(LOG10_2_HIGH, rest))


def log1p(x: Term) -> Term:
    """Creates log(1 + x) of a float64, corrected for the rounding of 1 + x (s_log1p.c); error up to 2 ulp."""
    whole = x + 1.0
    exponent, fraction, lost = of_one_plus(x, whole, _mantissa(whole))
    result = _sum(exponent, fraction, exponent.fma(LN2_LOW, lost))
    return at_the_edges(whole, result).replaced(_is_tiny(x), x)


def of_one_plus(x: Term, whole: Term, mantissa: tuple[Term, Term]) -> tuple[Term, Term, Term]:
    """Creates the correction of the logarithm of ``whole`` = 1 + x, a rounded sum; not the logarithm itself.

    ``mantissa``: n and f of ``whole`` = 2**n * (1 + f). Returns n, f and the relative error by which
    ``whole`` was rounded; where n is 0, f is x, without error.
    """
    exponent, fraction = mantissa
    lost = (x - (whole - 1.0)) / whole
    is_near = exponent.equals(0.0)
    return exponent, fraction.replaced(is_near, x), lost.replaced(is_near, 0.0)


def between(x: Term, least: float, most: float) -> Term:
    """Creates ops that clamp a float ``x`` to a range and returns the result; NaN stays NaN."""
    return at_most(x, most).replaced(x < least, least)


def at_most(x: Term, most: float) -> Term:
    """Creates ops for the smaller of a float ``x`` and a number, and returns it; NaN stays NaN."""
    return x.replaced(x > most, most)


def at_the_edges(x: Term, logarithm: Term) -> Term:
    """Returns ``logarithm``, the logarithm of ``x``, with selects for special values of ``x``.

    The result is -inf for 0, NaN for a negative ``x`` or NaN, and inf for inf.
    """
    result = x.replaced(x < math.inf, logarithm)
    return result.replaced(x < 0.0, math.nan).replaced(x.equals(0.0), -math.inf)


def _reduced(x: Term) -> tuple[Term, Term]:
    """Returns n and expm1(r) where x = n * log(2) + r, |r| <= log(2) / 2: Cody and Waite's reduction."""
    rounded = x.fma(LOG2_E, ROUNDER)
    count = rounded - ROUNDER
    rest = count.fma(-LN2_LOW, count.fma(-LN2_HIGH, x))
    return _whole(rounded), _expm1_near_zero(rest)


def _expm1_near_zero(rest: Term) -> Term:
    return (rest * rest).fma(rest.polynomial(EXPM1), rest)


def _whole(rounded: Term) -> Term:
    """Returns the integer in the low bits of a float64 to which ROUNDER was added."""
    return rounded.bits() - rounded.constant(ROUNDER).bits()


def _scaled(x: Term, exponent: Term) -> Term:
    """Returns x * 2**exponent in two steps, of which one is exact: 2**exponent may not be a float64."""
    half = exponent >> 1
    return x * _power_of_two(half) * _power_of_two(exponent - half)


def _power_of_two(exponent: Term) -> Term:
    return ((exponent + BIAS) << FRACTION_BITS).converted("bitcast", ir.F64Type.get())


def mantissa_of(x: Term) -> tuple[Term, Term]:
    """Creates float64 terms n and m with x = m * 2**n, sqrt(1/2) <= m <= sqrt(2), for finite x > 0."""
    is_small = x < 2.0 ** (1 - BIAS)
    bits = x.replaced(is_small, x * 2.0**FRACTION_BITS).bits()
    exponent = (bits - x.constant(math.sqrt(0.5)).bits()) >> FRACTION_BITS
    mantissa = (bits - (exponent << FRACTION_BITS)).converted("bitcast", ir.F64Type.get())
    whole = exponent.converted("sitofp", ir.F64Type.get())
    return whole.replaced(is_small, whole - float(FRACTION_BITS)), mantissa


def _mantissa(x: Term) -> tuple[Term, Term]:
    exponent, mantissa = mantissa_of(x)
    return exponent, mantissa - 1.0


def _log1p(fraction: Term) -> Term:
    return fraction - _below(fraction)


def _sum(exponent: Term, fraction: Term, low: Term) -> Term:
    """Returns n * ln 2 + ln(1 + f), where ``low`` has the low part of n * ln 2, and corrections."""
    return exponent.fma(LN2_HIGH, fraction - (_below(fraction) - low))


def _below(fraction: Term) -> Term:
    """Returns f - log(1 + f), as in e_log.c of msun: f**2 / 2 - s * (f**2 / 2 + R) with s = f / (2 + f)."""
    ratio = fraction / (fraction + 2.0)
    square = ratio * ratio
    half = fraction * fraction * 0.5
    rest = square * square.polynomial(ATANH) * 2.0
    return half - ratio * (half + rest)


def _is_tiny(x: Term) -> Term:
    return x.math("absf") < TINY


# Numbers of about 106 bits as unevaluated sums of two float64 values, and the power that needs them.
#
# A sum ``high + low`` whose low part is below half a unit in the last place of the high part: Dekker, "A
# floating-point technique for extending the available precision", 1971; Joldes, Muller, Popescu, "Tight and
# rigorous error bounds for basic building blocks of double-word arithmetic", 2017. ``fma`` gives the rounding
# error of a product.

ATANH_TAIL = tuple(1 / (2 * power + 5) for power in range(10))  # of atanh(s) / s, from s**4 / 5 on, in s**2


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
        """Creates ``self + number`` for a float64 ``number``; returns the sum as a double-word number.

        Requires that ``number`` is 0, or that abs(number) >= abs(high part); else the rounding error is lost.
        """
        sum_ = _fast_sum(number, self.high)
        return _fast_sum(sum_.high, sum_.low + self.low)


def power(x: Term, y: Term) -> Term:
    """Creates x**y of two float64 terms and returns it; special cases as in C99, annex F; error up to 2 ulp.

    The result is 2**(y * log2(x)), where log2(x) has 64 bits or more.
    """
    magnitude = power_of_size(x, y)
    half = y * 0.5
    half_is_whole, is_whole = (number.equals(number.math("roundeven")) for number in (half, y))
    of_whole = magnitude.math("copysign", x).replaced(half_is_whole, magnitude)
    of_fraction = magnitude.replaced((x < 0.0) & (x > -math.inf), math.nan)
    return of_fraction.replaced(is_whole, of_whole)


def power_of_size(x: Term, y: Term) -> Term:
    """Creates ops for abs(x)**y of two float64 terms; returns the result, with an error up to 2 ulp."""
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
    below = mantissa - 1.0
    above = mantissa + 1.0
    lost = mantissa - (above - 1.0)  # rounding error of mantissa + 1
    ratio = below / above
    rest = ratio.fma(above * -1.0, below) - ratio * lost
    quotient = DoubleWord(ratio, rest / above)
    square = quotient * quotient
    tail = square.high * square.high * square.high.polynomial(ATANH_TAIL)
    third = square * DoubleWord(*map(ratio.constant, THIRD))
    one = ratio.constant(1.0)
    series = DoubleWord(third.high, third.low + tail).plus(one)  # atanh(s) / s
    factor = DoubleWord(*map(ratio.constant, TWO_OVER_LN2))
    return (quotient * series * factor).plus(exponent)


def _fast_sum(larger: Term, smaller: Term) -> DoubleWord:
    """Returns a sum with its rounding error: Dekker's Fast2Sum, exact where |larger| >= |smaller| or is 0."""
    high = larger + smaller
    return DoubleWord(high, smaller - (high - larger))


def sinh(x: Term) -> Term:
    """Creates ops for the hyperbolic sine of a float64 ``x`` and returns the result; error up to 3 ulp."""
    size = x.math("absf")
    less = expm1(at_most(size, LARGE_HYPERBOLIC))
    near = (less + less / (less + 1.0)) * 0.5
    return near.replaced(size > LARGE_HYPERBOLIC, _half_exp(size)).math("copysign", x)


def cosh(x: Term) -> Term:
    """Creates ops for the hyperbolic cosine of a float64 ``x`` and returns the result; error up to 3 ulp."""
    size = x.math("absf")
    power = exp(at_most(size, LARGE_HYPERBOLIC))
    near = power.fma(0.5, power.constant(0.5) / power)
    return near.replaced(size > LARGE_HYPERBOLIC, _half_exp(size))


def asinh(x: Term) -> Term:
    """Creates ops for the inverse of sinh of a float64 ``x`` and returns the result; error up to 3 ulp."""
    size = x.math("absf")
    square = at_most(size, SQUARE_LARGE) * at_most(size, SQUARE_LARGE)
    near = log1p(size + square / ((square + 1.0).math("sqrt") + 1.0))
    return near.replaced(size > SQUARE_LARGE, log(size) + math.log(2)).math("copysign", x)


def acosh(x: Term) -> Term:
    """Creates ops for the inverse of cosh of a float64 ``x``; error up to 3 ulp; NaN for x below 1."""
    above = at_most(x, SQUARE_LARGE) - 1.0
    near = log1p(above + (above * (above + 2.0)).math("sqrt")).replaced(x < 1.0, math.nan)
    return near.replaced(x > SQUARE_LARGE, log(x) + math.log(2))


def atanh(x: Term) -> Term:
    """Creates ops for the inverse of tanh of a float64 ``x``; error up to 3 ulp; NaN for abs(x) above 1."""
    size = x.math("absf")
    return (log1p(size * 2.0 / (size.constant(1.0) - size)) * 0.5).math("copysign", x)


def _half_exp(size: Term) -> Term:
    """Returns e**x / 2 for x >= 0, in two factors: e**x may be above the largest float64."""
    root = exp(size * 0.5)
    return root * 0.5 * root


# Trigonometric functions of float64 and their inverses, in operations that every GPU has.
#
# Arguments are reduced to at most pi / 4 around a multiple of pi / 2, with pi / 2 in three parts and the
# rounding error of each product from ``fma``. An argument of 2**32 or more is, in a branch, multiplied by
# those bits of 2 / pi that count for its exponent, as integers (Payne and Hanek 1983). Polynomials of sine
# and cosine are Taylor's, of which the next term is below 2**-54 of the result; that of atan is tuner's,
# interpolated at Chebyshev nodes in 120 digits.

# (sin(r) - r) / r**3 and (cos(r) - 1 + r**2 / 2) / r**4, both in r**2, for |r| <= pi / 4
SINE = tuple((-1) ** (power + 1) / math.factorial(2 * power + 3) for power in range(8))
COSINE = tuple((-1) ** power / math.factorial(2 * power + 4) for power in range(7))


def sin(x: Term) -> Term:
    """Creates ops for the sine of a float64 ``x``; error up to 2 ulp."""
    quarter, sine, cosine = _sine_and_cosine(x)
    result = sine.replaced(_bit(quarter, 0), cosine)
    result = result.replaced(_bit(quarter, 1), result * -1.0)
    return result.replaced(x.equals(0.0), x)  # -0 stays -0


def cos(x: Term) -> Term:
    """Creates ops for the cosine of a float64 ``x``; error up to 2 ulp."""
    quarter, sine, cosine = _sine_and_cosine(x)
    result = cosine.replaced(_bit(quarter, 0), sine)
    return result.replaced(_bit(quarter + 1, 1), result * -1.0)


def tan(x: Term) -> Term:
    """Creates ops for the tangent of a float64 ``x``; error up to 3 ulp."""
    quarter, sine, cosine = _sine_and_cosine(x)
    is_odd = _bit(quarter, 0)
    result = sine.replaced(is_odd, cosine * -1.0) / cosine.replaced(is_odd, sine)
    return result.replaced(x.equals(0.0), x)


def atan(x: Term) -> Term:
    """Creates ops for the arctangent of a float64 ``x``; error up to 2 ulp."""
    return _atan_of_size(x.math("absf")).math("copysign", x)


def atan2(y: Term, x: Term) -> Term:
    """Creates the angle of the point (``x``, ``y``) of float64; error up to 3 ulp; zeros as C99, annex F."""
    height = y.math("absf")
    width = x.math("absf")
    ratio = height / width
    ratio = ratio.replaced(height.equals(0.0) & width.equals(0.0), 0.0)
    ratio = ratio.replaced(height.equals(math.inf) & width.equals(math.inf), 1.0)
    angle = _atan_of_size(ratio)
    is_left = x.constant(1.0).math("copysign", x) < 0.0
    mirrored = angle.constant(math.pi) - (angle - 2 * HALF_PI[1])
    return angle.replaced(is_left, mirrored).math("copysign", y)


def asin(x: Term) -> Term:
    """Creates ops for the arcsine of a float64 ``x``; error up to 3 ulp; NaN for abs(x) above 1."""
    return atan2(x, ((x.constant(1.0) - x) * (x + 1.0)).math("sqrt"))


def acos(x: Term) -> Term:
    """Creates ops for the arccosine of a float64 ``x``; error up to 3 ulp; NaN for abs(x) above 1."""
    return atan2((x.constant(1.0) - x).math("sqrt"), (x + 1.0).math("sqrt")) * 2.0


def _sine_and_cosine(x: Term) -> tuple[Term, Term, Term]:
    """Returns n as i64, sin(r) and cos(r), where x = n * pi / 2 + r; only n modulo 4 is right."""
    is_small = x.math("absf") < LARGE_ANGLE
    whole, rest, low = _large_where(is_small, x, _reduced_angle(x.constant(0.0).replaced(is_small, x)))
    square = rest * rest
    sine = (square * rest).fma(square.polynomial(SINE), low.fma(square.fma(-0.5, 1.0), rest))
    higher = (square * square).fma(square.polynomial(COSINE), rest * low * -1.0)
    half = square * 0.5
    above = rest.constant(1.0) - half
    cosine = above + (((rest.constant(1.0) - above) - half) + higher)
    return whole, sine, cosine


def _reduced_angle(x: Term) -> tuple[Term, Term, Term]:
    """Returns n as i64, and r in two parts, where x = n * pi / 2 + r, of an abs(x) below LARGE_ANGLE."""
    count = (x * (2 / math.pi)).math("roundeven")
    product = count * HALF_PI[0]
    near = x - product  # exact
    lost = count.fma(HALF_PI[0], product * -1.0)
    first = near - lost
    middle = count * HALF_PI[1]
    middle_lost = count.fma(HALF_PI[1], middle * -1.0)
    rest = first - middle
    low = ((near - first) - lost) + ((first - rest) - middle) - count.fma(HALF_PI[2], middle_lost)
    return count.converted("fptosi", ir.IntegerType.get_signless(64)), rest, low


def _large_where(is_small: Term, x: Term, small: Sequence[Term]) -> list[Term]:
    """Returns n and r: ``small`` where ``is_small``, else those of ``_reduced_large``, computed in a branch.

    Lanes that are masked may be poison, and a branch on poison is undefined behavior: hence the freeze.
    """
    types = [term.value.type for term in small]
    are_small = is_small.all().value
    frozen = value("llvm.freeze", are_small.type, are_small)
    op = ir.Operation.create("scf.if", types, [frozen], regions=2)
    with ir.InsertionPoint(op.regions[0].blocks.append()):
        create("scf.yield", [], [term.value for term in small])
    with ir.InsertionPoint(op.regions[1].blocks.append()):
        large = _reduced_large(x.replaced(is_small, LARGE_ANGLE))
        chosen = [term.replaced(is_small, other) for term, other in zip(large, small, strict=True)]
        create("scf.yield", [], [term.value for term in chosen])
    return list(map(Term, op.results))


def _reduced_large(x: Term) -> tuple[Term, Term, Term]:
    """Returns n modulo 4 as i64, and r in two parts, where x = n * pi / 2 + r; NaN for what is not finite.

    abs(x) is m * 2**e with 53 bits of m. Bits of 2 / pi whose product with abs(x) is a multiple of 4 do not
    count. Of the others the first 192 suffice: r is never below 2**-62, so 64 bits or more of r are right.
    """
    bits = x.math("absf").bits()
    exponent = (bits >> FRACTION_BITS) - WORDS_BIAS
    fraction = (bits & FRACTION) | (FRACTION + 1)
    low_half = fraction & WORD
    high_half = fraction >> WORD_BITS
    parts: list[Term] = []  # the product's words, from the lowest on; that above the last is a multiple of 4
    carry = before = zero = bits.constant(0)
    # In 64 bits, read as unsigned: a half of m and a word have at most 32 bits, and a product with its carry
    # fits. ``& WORD`` undoes that >> is signed. The high half counts 2**32, so it meets the word below.
    for word in reversed(_window(exponent + WORD_BITS)):
        first = low_half * word + carry
        second = high_half * before + (first & WORD)
        parts.append(second & WORD)
        carry = ((first >> WORD_BITS) & WORD) + (second >> WORD_BITS)
        before = word
    # the two highest bits of the last word are n modulo 4, all below is a fraction of a quarter turn; n is
    # rounded to nearest, so what is left of the word may be negative
    whole = (parts[-1] + (1 << WORD_BITS - 3)) >> WORD_BITS - 2
    parts[-1] = parts[-1] - (whole << WORD_BITS - 2)
    rest = x.constant(0.0)
    low = x.constant(0.0)
    # the sum of the words and what it loses; of the four highest 126 bits are r's, which suffice
    for index, part in enumerate(reversed(parts[2:])):
        scaled = part.converted("sitofp", x.element) * 2.0 ** (2 - WORD_BITS * (index + 1))
        both = rest + scaled
        rest, low = both, low + (scaled - (both - rest))
    angle = rest * HALF_PI[0]
    low = rest.fma(HALF_PI[0], angle * -1.0) + rest.fma(HALF_PI[1], low * HALF_PI[0])
    sign = x.constant(1.0).math("copysign", x)
    angle = x.constant(math.nan).replaced(x.math("absf") < math.inf, angle * sign)
    return whole.replaced(x < 0.0, zero - whole), angle, low * sign


def _window(start: Term) -> list[Term]:
    """Returns the six words of TWO_OVER_PI from bit ``start`` on, a number of 64 bits, the highest first."""
    words = [
        start.constant(TWO_OVER_PI >> WORD_BITS * number & WORD) for number in reversed(range(TABLE_WORDS))
    ]
    # Bits 5 to 9 of ``start`` are the index of its first word. By each of them, from bit 9 down, the words
    # from 0 or from ``shift`` on are selected: a table would lie in memory.
    shift = 16
    while shift:
        is_later = _bit(start, FIRST_BIT + shift.bit_length() - 1)  # shift 16: bit 9 of ``start``
        words = [words[at].replaced(is_later, words[at + shift]) for at in range(WINDOW_WORDS + shift)]
        shift //= 2
    shift_bits = start.constant(WORD_BITS) - (start & (WORD_BITS - 1))
    return [(((high << WORD_BITS) | low) >> shift_bits) & WORD for high, low in pairwise(words)]


def _atan_of_size(size: Term) -> Term:
    """Returns atan of a float64 >= 0: reduced to |z| <= tan(pi / 8) by pi / 4 or pi / 2."""
    is_large = size > 1 / TANGENT
    is_middle = size > TANGENT
    zero = size.constant(0.0)
    # atan(x) = pi / 4 + atan((x - 1) / (x + 1)) = pi / 2 + atan(-1 / x)
    top = size.replaced(is_middle, size - 1.0).replaced(is_large, -1.0)
    bottom = size.constant(1.0).replaced(is_middle, size + 1.0).replaced(is_large, size)
    high = zero.replaced(is_middle, HALF_PI[0] / 2).replaced(is_large, HALF_PI[0])
    low = zero.replaced(is_middle, HALF_PI[1] / 2).replaced(is_large, HALF_PI[1])
    ratio = top / bottom
    square = ratio * ratio
    return high + (ratio + (square * ratio).fma(square.polynomial(ATAN), low))


def _bit(number: Term, bit: int) -> Term:
    return (number >> bit).converted("trunci", ir.IntegerType.get_signless(1))
