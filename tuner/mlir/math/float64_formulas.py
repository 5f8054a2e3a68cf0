"""Elementary functions of float64 in operations that every GPU has: exponentials, logarithms, erf.

Arguments are reduced as in ``math_formulas``. Polynomials are Taylor's, of which the next term is below
2**-54 of the result, except those of erf: tuner's, interpolated at Chebyshev nodes in 120 digits and rounded
to float64; the comment of each has the error that it causes. The errors in the functions' docstrings are the
largest that tests/mlir/math/test_float64_formulas.py allows.
"""

import math

from tuner.mlir.bindings import ir
from tuner.mlir.math.op_expressions import Term

FRACTION_BITS, BIAS = 52, 1023
ROUNDER = 1.5 * 2**FRACTION_BITS  # x + ROUNDER has the nearest integer to x in its low bits
TINY = 2.0**-54  # below this, expm1(x) and log1p(x) are x
LOG2_E, LOG10_E = math.log2(math.e), math.log10(math.e)
# Constants in two parts (Cody and Waite): the high part has 32 bits; its product with an exponent is exact.
LN2_HIGH, LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10
LOG10_2_HIGH, LOG10_2_LOW = 0.3010299955494702, 1.1451100898021838e-10
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
ERF_THRESHOLD, ERF_END = 0.92, 6.0  # erf is computed by erfc from the first on, and 1 from the second on
# erfc(x) * exp(x**2) * (1 + 2 * x) in (x - CENTER) / (x + CENTER), Shepherd and Laframboise 1981; 2**-54.8
CENTER = 2.25
ERFC = (
    *(1.2709799230171555, -0.1102556159430126, -0.13078010182999833, 0.16525643251551628),
    *(-0.0831325370442707, 0.011441014956230695, 0.008093641172943587, -0.0026191113708820286),
    *(-0.0011735125225449878, 0.00041201521715230905, 0.00025105252735490766, -4.425151490804731e-05),
    *(-5.922744533799974e-05, -3.7232826170624953e-06, 1.1022494174291283e-05, 3.0886486051584095e-06),
)


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
    """Creates ops for the natural logarithm of a float64 ``x``; error up to 1 ulp.

    NaN for x < 0, -inf for 0.
    """
    exponent, fraction = _mantissa(x)
    return at_the_edges(x, _sum(exponent, fraction, exponent * LN2_LOW))


def log2(x: Term) -> Term:
    """Creates ops for the logarithm to base 2 of a float64 ``x``; error up to 2 ulp.

    NaN for x < 0, -inf for 0.
    """
    exponent, fraction = _mantissa(x)
    return at_the_edges(x, _log1p(fraction).fma(LOG2_E, exponent))


def log10(x: Term) -> Term:
    """Creates ops for the logarithm to base 10 of a float64 ``x``; error up to 2 ulp.

    NaN for x < 0, -inf for 0.
    """
    exponent, fraction = _mantissa(x)
    rest = exponent.fma(LOG10_2_LOW, _log1p(fraction) * LOG10_E)
    return at_the_edges(x, exponent.fma(LOG10_2_HIGH, rest))


def log1p(x: Term) -> Term:
    """Creates ops for log(1 + x) of a float64 ``x`` and returns the result; error up to 2 ulp.

    Corrected for the rounding of 1 + x, as in s_log1p.c of msun, FreeBSD's mathematical library.
    """
    whole = x + 1.0
    exponent, fraction = _mantissa(whole)
    lost = (x - (whole - 1.0)) / whole  # relative rounding error of 1 + x
    is_near = exponent.equals(0.0)
    fraction, lost = fraction.replaced(is_near, x), lost.replaced(is_near, 0.0)
    result = _sum(exponent, fraction, exponent.fma(LN2_LOW, lost))
    return at_the_edges(whole, result).replaced(_is_tiny(x), x)


def between(x: Term, least: float, most: float) -> Term:
    """Creates ops that clamp a float ``x`` to a range and returns the result; NaN stays NaN."""
    return at_most(x, most).replaced(x < least, least)


def at_most(x: Term, most: float) -> Term:
    """Creates ops for the smaller of a float ``x`` and a number, and returns it; NaN stays NaN."""
    return x.replaced(x > most, most)


def at_the_edges(x: Term, logarithm: Term) -> Term:
    """Returns a logarithm of ``x``, replaced by -inf, NaN or inf where ``x`` is no positive finite number."""
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
    """Returns x * 2**exponent in two steps: 2**exponent may not be a float64, and only one is rounded."""
    half = exponent >> 1
    return x * _power_of_two(half) * _power_of_two(exponent - half)


def _power_of_two(exponent: Term) -> Term:
    """Returns 2**exponent as float64, for 64-bit integers from -1022 to 1023."""
    return ((exponent + BIAS) << FRACTION_BITS).converted("bitcast", ir.F64Type.get())


def mantissa_of(x: Term) -> tuple[Term, Term]:
    """Creates ops for n and m with x = m * 2**n, sqrt(1/2) <= m <= sqrt(2); returns both as float64.

    Unspecified for x <= 0, infinity and NaN.
    """
    is_small = x < 2.0 ** (1 - BIAS)
    bits = x.replaced(is_small, x * 2.0**FRACTION_BITS).bits()
    exponent = (bits - x.constant(math.sqrt(0.5)).bits()) >> FRACTION_BITS
    mantissa = (bits - (exponent << FRACTION_BITS)).converted("bitcast", ir.F64Type.get())
    whole = exponent.converted("sitofp", ir.F64Type.get())
    return whole.replaced(is_small, whole - float(FRACTION_BITS)), mantissa


def _mantissa(x: Term) -> tuple[Term, Term]:
    """Returns n and f where x = (1 + f) * 2**n."""
    exponent, mantissa = mantissa_of(x)
    return exponent, mantissa - 1.0


def _log1p(fraction: Term) -> Term:
    """Returns log(1 + f) for the f of ``_mantissa``."""
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
