"""Elementary functions of float32 in operations that every GPU has: no libdevice, nothing approximate.

Results are bit-identical wherever sums, products, quotients and ``fma`` are rounded once. Arguments are
reduced as by Cody and Waite (Software Manual for the Elementary Functions, 1980) and in FreeBSD's msun
(s_expm1f.c, s_log1pf.c, s_tanhf.c). The minimax polynomials are tuner's, found by Remez' exchange algorithm
in 40 digits and rounded to float32; the comment of each has the relative error that it causes in the result.
The errors in the functions' docstrings are the largest that tests/mlir/math/test_lowering.py allows.
"""

import math

from tuner.mlir.bindings import ir
from tuner.mlir.math.expressions import Term
from tuner.mlir.math.float64 import at_most, at_the_edges, between, of_one_plus

LOG2_E = math.log2(math.e)
LOG10_E = math.log10(math.e)
# Constants in two parts (Cody and Waite): the high part has 16 bits; its product with an exponent is exact.
LN2_HIGH = 0.693145751953125
LN2_LOW = math.log(2) - 0.693145751953125
LOG10_2_HIGH = 0.301025390625
LOG10_2_LOW = math.log10(2) - 0.301025390625
ROUNDER = 1.5 * 2**23  # x + ROUNDER, for |x| of at most 22 bits, has the nearest integer in its low bits
ROUNDER_F64 = 1.5 * 2**52
TINY = 2.0**-25  # below this, expm1(x) and log1p(x) are x
# (exp(r) - 1 - r) / r**2 for |r| <= log(2) / 2; 2**-31.9
EXPM1 = (
    *(0.5, 0.1666666567325592, 0.04166635498404503, 0.008333390578627586),
    *(0.0013941132929176092, 0.00019845917995553464),
)
# (log(1 + f) - f + f**2 / 2) / f**3 for sqrt(1/2) <= 1 + f <= sqrt(2); 2**-30.3
LOG1P = (
    *(0.3333331346511841, -0.25000008940696716, 0.2000211924314499, -0.1666799634695053),
    *(0.14219552278518677, -0.1240558996796608, 0.11888162046670914, -0.11675645411014557),
    0.06746634095907211,
)
# erf(x) / x in 2 * (x / ERF_END)**2 - 1 for |x| <= ERF_END; 2**-25.6
ERF = (
    *(0.36491942405700684, -0.18215012550354004, 0.13545124232769012, -0.10996592044830322),
    *(0.09074097871780396, -0.07349098473787308, 0.05727096647024155, -0.04203062132000923),
    *(0.02841660939157009, -0.01873912289738655, 0.012827413156628609, -0.006837579887360334),
    *(0.0018750105518847704, -0.0012639884371310472, 0.0017201888840645552, -0.0006789895123802125),
)
ERF_END = 3.875  # the polynomial is 1 there, and so is erf beyond
# exp(r) in float64 for |r| <= log(2) / 2, and atanh(s) / s in s**2 for |s| <= 0.172: Taylor, up to 2**-47
EXP_F64 = tuple(1 / math.factorial(power) for power in range(12))
ATANH_F64 = tuple(1 / (2 * power + 1) for power in range(9))


def exp(x: Term) -> Term:
    """Creates e**x of a float32, 2**n * e**r with a small r, scaled in two steps; error up to 1 ulp."""
    exponent, fraction = _reduced(between(x, -104, 89))  # outside of this range: 0 and infinity
    half = exponent >> 1  # 2**exponent may not be a float32; only the product may be rounded
    scale = _power_of_two(half)
    return fraction.fma(scale, scale) * _power_of_two(exponent - half)


def expm1(x: Term) -> Term:
    """Creates e**x - 1 of a float32, 2**n * (e**r - 1) + (2**n - 1) with a small r; error up to 2 ulp."""
    exponent, fraction = _reduced(between(x, -18, 89))  # outside of this range: -1 and infinity
    half = _power_of_two(exponent - 1)
    result = fraction.fma(half, half - 0.5) * 2.0
    return result.replaced(_is_tiny(x), x)


def tanh(x: Term) -> Term:
    """Creates tanh of a float32 from expm1(2 * abs(x)), as in msun's s_tanhf.c; error up to 3 ulp."""
    size = x.math("absf")
    power = expm1(at_most(size, 10.0) * 2.0)  # above 10 the result is 1
    return (power / (power + 2.0)).math("copysign", x)


def erf(x: Term) -> Term:
    """Creates erf of a float32, x times a polynomial in x**2, without a branch; error up to 4 ulp."""
    size = between(x, -ERF_END, ERF_END)
    place = (size * size).fma(2 / ERF_END**2, -1.0)
    return place.polynomial(ERF) * size


def log(x: Term) -> Term:
    """Creates ln x of a float32, n * ln 2 + ln(1 + f), where x = 2**n * (1 + f); error up to 1 ulp."""
    exponent, fraction = _mantissa(x)
    result = exponent.fma(LN2_HIGH, exponent.fma(LN2_LOW, _log1p(fraction)))
    return at_the_edges(x, result)


def log2(x: Term) -> Term:
    """Creates log2 of a float32, n + ln(1 + f) / ln 2, where x = 2**n * (1 + f); error up to 2 ulp."""
    exponent, fraction = _mantissa(x)
    return at_the_edges(x, _log1p(fraction).fma(LOG2_E, exponent))


def log10(x: Term) -> Term:
    """Creates log10 of a float32, (n * ln 2 + ln(1 + f)) / ln 10; error up to 2 ulp."""
    exponent, fraction = _mantissa(x)
    result = exponent.fma(LOG10_2_HIGH, exponent.fma(LOG10_2_LOW, _log1p(fraction) * LOG10_E))
    return at_the_edges(x, result)


def log1p(x: Term) -> Term:
    """Creates log(1 + x) of a float32, corrected for the rounding of 1 + x (s_log1pf.c); error <= 2 ulp."""
    whole = x + 1.0
    exponent, fraction, lost = of_one_plus(x, whole, _mantissa(whole))
    result = exponent.fma(LN2_HIGH, exponent.fma(LN2_LOW, lost) + _log1p(fraction))
    return at_the_edges(whole, result).replaced(_is_tiny(x), x)


def rsqrt(x: Term) -> Term:
    """Creates 1 / sqrt(x) of a float32 or float64, root and quotient rounded; error up to 2 ulp."""
    return x.constant(1.0) / x.math("sqrt")


def power(x: Term, y: Term) -> Term:
    """Creates x**y of a float32 ``x`` and a float64 ``y``; returns a float32; error up to 0.5001 ulp.

    Computed as 2**(y * log2(x)) in float64. Special cases follow C99, annex F.
    """
    size = x.math("absf").converted("extf", ir.F64Type.get())
    logarithm = _log2_f64(size)
    exponent = (logarithm * y).replaced(logarithm.equals(0.0), 0.0)  # 1**y is 1
    exponent = exponent.replaced(y.equals(0.0), 0.0)  # x**0 is 1
    result = _exp2_f64(exponent).converted("truncf", x.element)
    half = y * 0.5
    of_whole = result.math("copysign", x).replaced(half.equals(half.math("roundeven")), result)
    of_fraction = result.replaced((x < 0.0) & (x > -math.inf), math.nan)
    return of_fraction.replaced(y.equals(y.math("roundeven")), of_whole)


def _reduced(x: Term) -> tuple[Term, Term]:
    """Returns n and expm1(r) where x = n * log(2) + r, |r| <= log(2) / 2: Cody and Waite's reduction."""
    rounded = x.fma(LOG2_E, ROUNDER)
    count = rounded - ROUNDER
    rest = count.fma(-LN2_LOW, count.fma(-LN2_HIGH, x))
    return rounded.bits() - rounded.constant(ROUNDER).bits(), (rest * rest).fma(rest.polynomial(EXPM1), rest)


def _power_of_two(exponent: Term) -> Term:
    """Returns 2**exponent as float32, for 32-bit integers from -126 to 127."""
    return ((exponent + 127) << 23).converted("bitcast", ir.F32Type.get())


def _mantissa(x: Term) -> tuple[Term, Term]:
    """Returns n and f where x = (1 + f) * 2**n, sqrt(1/2) <= 1 + f <= sqrt(2); unspecified for x <= 0."""
    is_small = x < 2.0**-126
    bits = x.replaced(is_small, x * 2.0**23).bits()
    # floor(log2(x / sqrt(1/2))): bits of positive floats are ordered as they are
    exponent = (bits - x.constant(math.sqrt(0.5)).bits()) >> 23
    mantissa = (bits - (exponent << 23)).converted("bitcast", ir.F32Type.get())
    whole = exponent.converted("sitofp", ir.F32Type.get())
    return whole.replaced(is_small, whole - 23.0), mantissa - 1.0


def _log1p(fraction: Term) -> Term:
    """Returns log(1 + f) for the f of ``_mantissa``, by the minimax polynomial LOG1P."""
    rest = fraction.polynomial(LOG1P).fma(fraction, -0.5)
    return (fraction * fraction).fma(rest, fraction)


def _is_tiny(x: Term) -> Term:
    return x.math("absf") < TINY


def _log2_f64(x: Term) -> Term:
    """Returns log2 of a float64 >= 0 that is not subnormal: log(m) = 2 * atanh((m - 1) / (m + 1))."""
    bits = x.bits()
    wide = ir.F64Type.get()
    exponent = (bits - x.constant(math.sqrt(0.5)).bits()) >> 52
    mantissa = (bits - (exponent << 52)).converted("bitcast", wide)
    ratio = (mantissa - 1.0) / (mantissa + 1.0)
    series = ratio * (ratio * ratio).polynomial(ATANH_F64)
    return at_the_edges(x, series.fma(2 * LOG2_E, exponent.converted("sitofp", wide)))


def _exp2_f64(x: Term) -> Term:
    """Returns 2**x of a float64, by the Taylor polynomial of e**r; exact enough for a float32 result."""
    clamped = between(x, -200, 200)
    rounded = clamped + ROUNDER_F64
    count = rounded.bits() - rounded.constant(ROUNDER_F64).bits()
    scale = ((count + 1023) << 52).converted("bitcast", ir.F64Type.get())
    return ((clamped - (rounded - ROUNDER_F64)) * math.log(2)).polynomial(EXP_F64) * scale
