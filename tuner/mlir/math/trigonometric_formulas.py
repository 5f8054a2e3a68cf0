"""Trigonometric functions of float64 and their inverses, in operations that every GPU has.

Arguments are reduced to a quarter of a turn around a multiple of pi / 2, with pi / 2 in three parts and the
rounding error of each product from ``fma``. Where one is 2**32 or more, in a branch, it is multiplied by
those bits of 2 / pi that count for its exponent, as integers (Payne and Hanek 1983). Polynomials of sine and
cosine are Taylor's, of which the next term is below 2**-54 of the result; that of atan is tuner's,
interpolated at Chebyshev nodes in 120 digits. The errors in the functions' docstrings are the largest that
tests/mlir/math/test_trigonometric_formulas.py allows.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

from tuner.mlir.bindings import ir
from tuner.mlir.math.op_expressions import Term
from tuner.mlir.rewrite.building import create, value

HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)  # pi / 2 in three parts
LARGE = 2.0**32  # below this, a product with 2 / pi is off by less than 2**-19
FRACTION_BITS, WORD_BITS = 52, 32
BIAS = 1023 + FRACTION_BITS  # of the exponent of a float64 read as an integer of 53 bits
WORD, FRACTION = 2**WORD_BITS - 1, 2**FRACTION_BITS - 1
# floor(2**1182 * 2 / pi): in 38 words of 32 bits, 34 zeros and the first bits of 2 / pi
TWO_OVER_PI = int(
    "28be60db9391054a7f09d5f47d4d377036d8a5664f10e4107f9458eaf7aef1586dc91b8e909374b801924bba82746487"
    "3f877ac72c4a69cfba208d7d4baed1213a671c09ad17df904e64758e60d4ce7d272117e2ef7e4a0ec7fe25fff7816603"
    "fbcbc462d6829b47db4d9fb3c9f2c26dd3d18fd9a797fa8b5d49eeb1faf97c5ecf41ce7de294a4ba9afed7ec47e35742"
    "1580cc11",
    16,
)
TABLE_WORDS, WINDOW_WORDS = 38, 6  # all of them, and those that count for one exponent
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
    """Creates ops for the sine of a float64 ``x``; error up to 2 ulp."""
    quarter, sine, cosine = _turned(x)
    result = sine.replaced(_bit(quarter, 0), cosine)
    result = result.replaced(_bit(quarter, 1), result * -1.0)
    return result.replaced(x.equals(0.0), x)  # -0 stays -0


def cos(x: Term) -> Term:
    """Creates ops for the cosine of a float64 ``x``; error up to 2 ulp."""
    quarter, sine, cosine = _turned(x)
    result = cosine.replaced(_bit(quarter, 0), sine)
    return result.replaced(_bit(quarter + 1, 1), result * -1.0)


def tan(x: Term) -> Term:
    """Creates ops for the tangent of a float64 ``x``; error up to 3 ulp."""
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
    """Returns n as i64, sin(r) and cos(r), where x = n * pi / 2 + r, up to multiples of 4 of n."""
    is_small = x.math("absf") < LARGE
    whole, rest, low = _large_where(is_small, x, _reduced(x.constant(0.0).replaced(is_small, x)))
    square = rest * rest
    sine = (square * rest).fma(square.polynomial(SINE), low.fma(square.fma(-0.5, 1.0), rest))
    higher = (square * square).fma(square.polynomial(COSINE), rest * low * -1.0)
    half = square * 0.5
    above = rest.constant(1.0) - half
    cosine = above + (((rest.constant(1.0) - above) - half) + higher)
    return whole, sine, cosine


def _reduced(x: Term) -> tuple[Term, Term, Term]:
    """Returns n as i64, and r in two parts, where x = n * pi / 2 + r, of an x below LARGE."""
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
    """Returns n and r of ``small``, replaced by those of the elements of x that are not, if there are any.

    Lanes that are masked may be poison, and a branch on poison has no meaning: hence the freeze.
    """
    types = [each.value.type for each in small]
    are_small = is_small.all().value
    frozen = value("llvm.freeze", are_small.type, are_small)
    op = ir.Operation.create("scf.if", types, [frozen], regions=2)
    with ir.InsertionPoint(op.regions[0].blocks.append()):
        create("scf.yield", [], [each.value for each in small])
    with ir.InsertionPoint(op.regions[1].blocks.append()):
        large = _reduced_large(x.replaced(is_small, LARGE))
        chosen = [one.replaced(is_small, other) for one, other in zip(large, small, strict=True)]
        create("scf.yield", [], [each.value for each in chosen])
    return [Term(each) for each in op.results]


def _reduced_large(x: Term) -> tuple[Term, Term, Term]:
    """Returns n modulo 4 as i64, and r in two parts, where x = n * pi / 2 + r; NaN for what is not finite.

    abs(x) is m * 2**e with 53 bits of m. Bits of 2 / pi whose products with it are multiples of 4 do not
    count; of the others the first 192 do, of which r, which is never below 2**-62, has the first 64 or more.
    """
    bits = x.math("absf").bits()
    exponent, fraction = (bits >> FRACTION_BITS) - BIAS, (bits & FRACTION) | (FRACTION + 1)
    low_half, high_half = fraction & WORD, fraction >> WORD_BITS
    parts: list[Term] = []  # the product's words, from the lowest on; that above the last is a multiple of 4
    carry = before = zero = bits.constant(0)
    for word in reversed(_window(exponent + WORD_BITS)):
        first = low_half * word + carry
        second = high_half * before + (first & WORD)
        parts.append(second & WORD)
        carry, before = ((first >> WORD_BITS) & WORD) + (second >> WORD_BITS), word
    whole = (parts[-1] + (1 << WORD_BITS - 3)) >> WORD_BITS - 2
    parts[-1] = parts[-1] - (whole << WORD_BITS - 2)
    rest, low = x.constant(0.0), x.constant(0.0)
    for number, part in enumerate(reversed(parts[2:])):  # of 32 bits each: their sum and what it loses
        scaled = part.converted("sitofp", x.element) * 2.0 ** (2 - WORD_BITS * (number + 1))
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
        start.constant(TWO_OVER_PI >> WORD_BITS * place & WORD) for place in reversed(range(TABLE_WORDS))
    ]
    shift = 16
    while shift:  # a bit of the first word's number after the other; constants lie in no memory
        is_later = _bit(start, WORD_BITS.bit_length() - 2 + shift.bit_length())
        words = [words[at].replaced(is_later, words[at + shift]) for at in range(WINDOW_WORDS + shift)]
        shift //= 2
    places = start.constant(WORD_BITS) - (start & (WORD_BITS - 1))
    return [(((high << WORD_BITS) | low) >> places) & WORD for high, low in pairwise(words)]


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
