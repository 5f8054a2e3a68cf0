"""Trigonometric functions of float64 and their inverses, in operations that every GPU has.

Arguments are reduced to a quarter of a turn around a multiple of pi / 2, with pi / 2 in three parts and the
rounding error of each product from ``fma``. Polynomials of sine and cosine are Taylor's, of which the next
term is below 2**-54 of the result; that of atan is tuner's, interpolated at Chebyshev nodes in 120 digits.
The errors in the functions' docstrings are the largest that tests/mlir/math/test_trigonometric_formulas.py
allows.
"""

import math

from tuner.mlir.bindings import ir
from tuner.mlir.math.op_expressions import Term

HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)  # pi / 2 in three parts
# Below this, the number of quarter turns is exact in float64. Above it neighbouring float64 values are a
# radian apart: the result is NaN.
LARGEST = 2.0**52
# (sin(r) - r) / r**3 and (cos(r) - 1 + r**2 / 2) / r**4, both in r**2, for |r| <= pi / 4
SINE = tuple((-1) ** (power + 1) / math.factorial(2 * power + 3) for power in range(8))
COSINE = tuple((-1) ** power / math.factorial(2 * power + 4) for power in range(7))
# (atan(z) - z) / z**3 in z**2 for |z| <= tan(pi / 8); 2**-56.9
ATAN = (
    *(-0.3333333333333333, 0.19999999999995513, -0.1428571428466518, 0.11111111015146714),
    *(-0.0909090457366906, 0.07692183087342026, -0.06664509989818045, 0.058581362519061465),
    *(-0.05085383488842831, 0.03922974453661223, -0.019174543572021332),
)
TANGENT = math.tan(math.pi / 8)


def sin(x: Term) -> Term:
    """Creates ops for the sine of a float64 ``x``; error up to 2 ulp; NaN for abs(x) above 2**52."""
    quarter, sine, cosine = _turned(x)
    result = sine.replaced(_bit(quarter, 0), cosine)
    result = result.replaced(_bit(quarter, 1), result * -1.0)
    return result.replaced(x.equals(0.0), x)  # -0 stays -0


def cos(x: Term) -> Term:
    """Creates ops for the cosine of a float64 ``x``; error up to 2 ulp; NaN for abs(x) above 2**52."""
    quarter, sine, cosine = _turned(x)
    result = cosine.replaced(_bit(quarter, 0), sine)
    return result.replaced(_bit(quarter + 1, 1), result * -1.0)


def tan(x: Term) -> Term:
    """Creates ops for the tangent of a float64 ``x``; error up to 3 ulp; NaN for abs(x) above 2**52."""
    quarter, sine, cosine = _turned(x)
    is_odd = _bit(quarter, 0)
    result = sine.replaced(is_odd, cosine * -1.0) / cosine.replaced(is_odd, sine)
    return result.replaced(x.equals(0.0), x)


def atan(x: Term) -> Term:
    """Creates ops for the arctangent of a float64 ``x``; error up to 2 ulp."""
    return _atan_of_size(x.math("absf")).math("copysign", x)


def atan2(y: Term, x: Term) -> Term:
    """Creates ops for the angle of the point (``x``, ``y``), two float64 terms; error up to 3 ulp.

    Signed zeros and infinities as in C99, annex F.
    """
    height, width = y.math("absf"), x.math("absf")
    ratio = height / width
    ratio = ratio.replaced(height.equals(0.0) & width.equals(0.0), 0.0)
    ratio = ratio.replaced(height.equals(math.inf) & width.equals(math.inf), 1.0)
    angle = _atan_of_size(ratio)
    is_left = x.constant(1.0).math("copysign", x) < 0.0
    turned = angle.constant(math.pi) - (angle - 2 * HALF_PI[1])
    return angle.replaced(is_left, turned).math("copysign", y)


def asin(x: Term) -> Term:
    """Creates ops for the arcsine of a float64 ``x``; error up to 3 ulp; NaN for abs(x) above 1."""
    return atan2(x, ((x.constant(1.0) - x) * (x + 1.0)).math("sqrt"))


def acos(x: Term) -> Term:
    """Creates ops for the arccosine of a float64 ``x``; error up to 3 ulp; NaN for abs(x) above 1."""
    return atan2((x.constant(1.0) - x).math("sqrt"), (x + 1.0).math("sqrt")) * 2.0


def _turned(x: Term) -> tuple[Term, Term, Term]:
    """Returns n as i64, sin(r) and cos(r), where x = n * pi / 2 + r; NaN for both beyond LARGEST."""
    is_small = x.math("absf") < LARGEST
    small = x.constant(0.0).replaced(is_small, x)
    count = (small * (2 / math.pi)).math("roundeven")
    product = count * HALF_PI[0]
    lost = count.fma(HALF_PI[0], product * -1.0)
    near = small - product  # exact
    middle = count.fma(HALF_PI[1], lost)
    middle_lost = count.fma(HALF_PI[1], lost - middle)
    rest = near - middle
    low = (near - rest) - middle - count.fma(HALF_PI[2], middle_lost)
    square = rest * rest
    sine = (square * rest).fma(square.polynomial(SINE), low.fma(square.fma(-0.5, 1.0), rest))
    higher = (square * square).fma(square.polynomial(COSINE), rest * low * -1.0)
    half = square * 0.5
    above = rest.constant(1.0) - half
    cosine = above + (((rest.constant(1.0) - above) - half) + higher)
    nan = rest.constant(math.nan)
    whole = count.converted("fptosi", ir.IntegerType.get_signless(64))
    return whole, nan.replaced(is_small, sine), nan.replaced(is_small, cosine)


def _atan_of_size(size: Term) -> Term:
    """Returns atan of a float64 >= 0: reduced to |z| <= tan(pi / 8) by pi / 4 or pi / 2."""
    is_large, is_middle = size > 1 / TANGENT, size > TANGENT
    zero = size.constant(0.0)
    top = size.replaced(is_middle, size - 1.0).replaced(is_large, -1.0)
    bottom = size.constant(1.0).replaced(is_middle, size + 1.0).replaced(is_large, size)
    high = zero.replaced(is_middle, HALF_PI[0] / 2).replaced(is_large, HALF_PI[0])
    low = zero.replaced(is_middle, HALF_PI[1] / 2).replaced(is_large, HALF_PI[1])
    ratio = top / bottom
    square = ratio * ratio
    return high + (ratio + (square * ratio).fma(square.polynomial(ATAN), low))


def _bit(number: Term, place: int) -> Term:
    """Returns a bit of an integer as i1."""
    return (number >> place).converted("trunci", ir.IntegerType.get_signless(1))
