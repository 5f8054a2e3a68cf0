"""Hyperbolic functions of float64 and their inverses, by expm1, exp and log1p.

The errors in the functions' docstrings are the largest that tests/mlir/math/test_hyperbolic_formulas.py
allows. tanh is in ``float64_formulas``.
"""

import math

from tuner.mlir.math.float64_formulas import at_most, exp, expm1, log, log1p
from tuner.mlir.math.op_expressions import Term

LARGE = 22.0  # from here on sinh and cosh are e**abs(x) / 2
SQUARE_LARGE = 2.0**28  # from here on x**2 + 1 is x**2


def sinh(x: Term) -> Term:
    """Creates ops for the hyperbolic sine of a float64 ``x`` and returns the result; error up to 3 ulp."""
    size = x.math("absf")
    less = expm1(at_most(size, LARGE))
    near = (less + less / (less + 1.0)) * 0.5
    return near.replaced(size > LARGE, _half_exp(size)).math("copysign", x)


def cosh(x: Term) -> Term:
    """Creates ops for the hyperbolic cosine of a float64 ``x`` and returns the result; error up to 3 ulp."""
    size = x.math("absf")
    power = exp(at_most(size, LARGE))
    near = power.fma(0.5, power.constant(0.5) / power)
    return near.replaced(size > LARGE, _half_exp(size))


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
