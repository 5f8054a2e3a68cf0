"""The math dialect against Python's math library."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from tests.programs.interpreter.lane_kernels import DTYPES, applied, each_applied

pytestmark = pytest.mark.mlir


ULPS = {"f16": 2.0**-10, "bf16": 2.0**-7, "f32": 2.0**-23, "f64": 2.0**-51}
ANY = [-3.7, -2.5, -1.5, -0.5, -0.3, 0.0, 0.3, 0.5, 1.0, 1.5, 2.5, 3.7]
POSITIVE = [0.1, 0.5, 1.0, 2.0, 7.25]
UNIT = [-0.9, -0.3, 0.0, 0.4, 0.9]
SMOOTH = ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "erf", "erfc", "expm1", "asinh", "atan")
FUNCTIONS: dict[str, tuple[Callable[[float], float], list[float]]] = {
    **{name: (getattr(math, name), ANY) for name in (*SMOOTH, "floor", "ceil", "trunc")},
    **{name: (getattr(math, name), POSITIVE) for name in ("log", "log2", "log10", "log1p", "sqrt")},
    **{name: (getattr(math, name), UNIT) for name in ("asin", "acos", "atanh")},
    "acosh": (math.acosh, [1.0, 2.0, 9.5]),
    "exp2": (lambda x: 2.0**x, ANY),
    "cbrt": (lambda x: math.copysign(abs(x) ** (1 / 3), x), ANY),
    "rsqrt": (lambda x: 1 / math.sqrt(x), POSITIVE),
    "absf": (abs, ANY),
    "round": (lambda x: math.copysign(math.floor(abs(x) + 0.5), x), ANY),
    "roundeven": (round, ANY),
}


@pytest.mark.parametrize("kind", ULPS)
@pytest.mark.parametrize("numbers", [ANY, POSITIVE, UNIT, FUNCTIONS["acosh"][1]])
def test_functions_of_one_number_are_right_but_for_rounding(numbers: list[float], kind: str) -> None:
    functions = {name: function for name, (function, given) in FUNCTIONS.items() if given is numbers}
    given = np.array(numbers).astype(DTYPES[kind])
    lines = [(f"%r = math.{name} %a : {kind}", DTYPES[kind]) for name in functions]
    for (name, function), found in zip(functions.items(), each_applied(lines, given), strict=True):
        wanted = [function(float(number)) for number in given]
        rtol, atol = ULPS[kind], ULPS[kind] * 2.0**-10
        np.testing.assert_allclose(found.astype(float), wanted, rtol, atol, err_msg=name)


BINARY: dict[str, Callable[[float, float], float]] = {
    "atan2": math.atan2,
    "copysign": math.copysign,
    "powf": math.pow,
}


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_numbers_are_right(name: str) -> None:
    one, other = (np.array(each) for each in ([2.0, 0.5, 3.0], [-1.0, 2.0, 0.0]))
    found = applied(f"%r = math.{name} %a, %b : f64", np.float64, one, other)
    np.testing.assert_allclose(found, list(map(BINARY[name], one, other)), rtol=2**-51)


def test_a_clamp_keeps_numbers_between_its_ends() -> None:
    numbers = [np.array(each, np.float32) for each in ([-2.0, 0.5, 9.0], [-1.0] * 3, [1.0] * 3)]
    assert applied("%r = math.clampf %a to [%b, %c] : f32", np.float32, *numbers).tolist() == [-1, 0.5, 1]


def test_sine_and_cosine_come_together() -> None:
    angles = np.array([0.0, 1.0, -2.0])
    for names, function in (("%r, %x", math.sin), ("%x, %r", math.cos)):
        found = applied(f"{names} = math.sincos %a : f64", np.float64, angles)
        np.testing.assert_allclose(found, list(map(function, angles)), rtol=1e-15)


def test_powers_of_integers_wrap_around_and_negative_exponents_divide() -> None:
    base = np.array([3, -2, 1, -1, -1, 5, 0, 7], np.int32)
    exponent = np.array([4, 31, -5, -3, -4, -1, 0, 40], np.int32)
    found = applied("%r = math.ipowi %a, %b : i32", np.int32, base, exponent)
    last = (7**40 + 2**31) % 2**32 - 2**31
    assert found.tolist() == [81, -(2**31), 1, -1, 1, 0, 1, last]
    exponent = np.array([2, 3, 4, 5, -1, -2, 1, 0], np.int32)
    power = applied("%r = math.fpowi %a, %b : f32, i32", np.float32, np.float32(base), exponent)
    np.testing.assert_allclose(power, [9, -8, 1, -1, -1, 0.04, 0, 1], rtol=2**-23)


@pytest.mark.parametrize("kind", ["i8", "i16", "i32", "i64"])
def test_bits_are_counted(kind: str) -> None:
    dtype, width = DTYPES[kind], int(kind[1:])
    numbers = np.array([0, 1, 2, 12, 100, -1, -128], dtype)
    patterns = [int(number) % (1 << width) for number in numbers]
    counted = {
        "ctpop": [bits.bit_count() for bits in patterns],
        "ctlz": [width - bits.bit_length() for bits in patterns],
        "cttz": [width if bits == 0 else (bits & -bits).bit_length() - 1 for bits in patterns],
        "absi": np.abs(numbers).tolist(),
    }
    for name, wanted in counted.items():
        assert applied(f"%r = math.{name} %a : {kind}", dtype, numbers).tolist() == wanted, name


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f64"])
def test_kinds_of_numbers_are_distinguished(kind: str) -> None:
    tiny = {"f16": 2.0**-20, "bf16": 2.0**-130, "f32": 2.0**-140, "f64": 2.0**-1040}[kind]
    numbers = np.array([0.0, 1.0, math.nan, math.inf, -math.inf, tiny]).astype(DTYPES[kind])
    wanted = {"isnan": "..1...", "isinf": "...11.", "isfinite": "11...1", "isnormal": ".1...."}
    for name, bits in wanted.items():
        found = applied(f"%r = math.{name} %a : {kind}", bool, numbers)
        assert found.tolist() == [bit == "1" for bit in bits], name
