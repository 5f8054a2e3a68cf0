"""Math of kernels as the simulated GPU computes it, against numpy in float64."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from tests.default_suite import ALL
from tests.mlir.math import kernel_math
from tests.mlir.math.kernel_math import COUNT, THREADS, Array, computed, exactly, ulps, unary, values_of
from tests.targets.evaluation import fails
from tests.texts import text_beside
from tuner.core.errors import Stage
from tuner.gpu.target.compiler import find_ptxas

# What the formulas say of themselves; exp2 is exact here, a device's ex2.approx may be off by two more.
ULPS = {
    **dict.fromkeys(("exp2", "sqrt"), 0.5),
    **dict.fromkeys(("exp", "log"), 1.0),
    **dict.fromkeys(("expm1", "log1p", "log2", "log10", "rsqrt"), 2.0),
    "erf": 4.0,
    "tanh": 3.0,
}
DTYPES, MANY, edges_first = kernel_math.DTYPES, kernel_math.MANY, kernel_math.edges_first
FLOATS = ("f16", "bf16", "f32", "f64")
EXACT: dict[str, Callable[[Array], Array]] = {
    "absf": np.abs,
    "ceil": np.ceil,
    "floor": np.floor,
    "trunc": np.trunc,
    "roundeven": np.rint,
    "round": lambda x: np.copysign(np.trunc(np.abs(x)) + (np.abs(x) - np.trunc(np.abs(x)) >= 0.5), x),
}
REFERENCES: dict[str, Callable[[Array], Array]] = {
    "erf": np.vectorize(math.erf),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    **{name: getattr(np, name) for name in ULPS if name not in ("erf", "rsqrt")},
}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", ULPS)
def test_a_function_of_f32_is_as_close_as_it_says(name: str) -> None:
    values = values_of("f32", MANY)
    distance = ulps(unary(name, values, "f32"), exactly(REFERENCES[name], values))
    worst = int(np.argmax(distance))
    assert distance[worst] <= ULPS[name], values[worst]


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("name", ULPS)
def test_a_function_of_16_bits_is_that_of_f32_rounded(name: str, kind: str) -> None:
    values = values_of(kind)
    exact = exactly(REFERENCES[name], values)
    found = unary(name, values, kind)
    with np.errstate(all="ignore"):
        nearest = exact.astype(DTYPES[kind])
    same = (found == nearest) | (np.isnan(found) & np.isnan(nearest))
    assert same.mean() > 0.999  # but for exact results almost halfway between two numbers
    near = ulps(found.astype(np.float32), nearest.astype(np.float64))
    assert near.max() <= 2.0 ** (23 - (10 if kind == "f16" else 7))  # those are neighbours


def require_same(found: Array, expected: Array) -> None:
    np.testing.assert_array_equal(found.astype(np.float64), expected.astype(np.float64))
    number = ~np.isnan(expected.astype(np.float64))
    np.testing.assert_array_equal(np.signbit(found[number]), np.signbit(expected[number]))


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("name", EXACT)
def test_what_is_exact_is_exact(name: str, kind: str) -> None:
    values = values_of(kind)
    require_same(unary(name, values, kind), exactly(EXACT[name], values).astype(values.dtype))


@pytest.mark.parametrize("name", ["sqrt", "rsqrt"])
def test_roots_of_f64_are_rounded(name: str) -> None:
    values = values_of("f64")
    with np.errstate(all="ignore"):
        expected = np.sqrt(values) if name == "sqrt" else 1 / np.sqrt(values)
    np.testing.assert_array_equal(unary(name, values, "f64"), expected)


@pytest.mark.parametrize("kind", FLOATS)
def test_signs_are_copied(kind: str) -> None:
    size, sign = values_of(kind), np.roll(values_of(kind), 7)
    found = computed(f"%y = math.copysign %x0, %x1 : {kind}", size, sign, types=(kind, kind), result=kind)
    require_same(found, np.copysign(size, sign))


@pytest.mark.parametrize("kind", FLOATS)
def test_a_product_and_a_sum_are_fused(kind: str) -> None:
    rng, dtype = np.random.default_rng(0), DTYPES[kind]
    a, b = (rng.standard_normal(THREADS).astype(dtype) for _ in range(2))
    c = -(a * b)  # what is left is what rounding the product lost
    found = computed(f"%y = math.fma %x0, %x1, %x2 : {kind}", a, b, c, types=(kind,) * 3, result=kind)
    assert np.count_nonzero(found) > THREADS // 2
    if kind != "f64":
        np.testing.assert_array_equal(found, exactly(lambda x, y, z: x * y + z, a, b, c).astype(dtype))


@pytest.mark.parametrize("kind", FLOATS)
def test_kinds_of_numbers_are_reported(kind: str) -> None:
    values = values_of(kind)
    for name in ("isfinite", "isinf", "isnan"):
        op = f"%is = math.{name} %x0 : {kind} %y = arith.extui %is : i1 to i32"
        found = computed(op, values, types=(kind,), result="i32")
        np.testing.assert_array_equal(found, getattr(np, name)(values.astype(np.float64)))


@pytest.mark.drawn(2)
@pytest.mark.parametrize("kind", ["i8", "i32", "i64"])
def test_bits_of_integers_are_counted(kind: str) -> None:
    width = int(kind[1:])
    values = np.random.default_rng(0).integers(0, 256, THREADS * width // 8, np.uint8).view(DTYPES[kind])
    values[:6] = [0, 1, -1, 2, np.iinfo(values.dtype).max, np.iinfo(values.dtype).min + 1]
    texts = [format(int(number) & (1 << width) - 1, f"0{width}b") for number in values]
    expected = {
        "absi": np.abs(values).tolist(),  # the least number stays what it is
        "ctpop": [text.count("1") for text in texts],
        "ctlz": [width - len(text.lstrip("0")) for text in texts],
        "cttz": [width - len(text.rstrip("0")) for text in texts],
    }
    for name, numbers in expected.items():
        assert unary(name, values, kind).tolist() == numbers, name


@pytest.mark.slow
def test_a_power_is_rounded_once_and_has_the_edges_of_c99() -> None:
    rng = np.random.default_rng(0)
    pairs = edges_first(rng.lognormal(0, 3, MANY), rng.uniform(-30, 30, MANY)).astype(np.float32)
    found = computed("%y = math.powf %x0, %x1 : f32", *pairs, types=("f32", "f32"), result="f32")
    distance = ulps(found, exactly(np.power, *pairs))
    worst = int(np.argmax(distance))
    assert distance[worst] <= 0.5001, pairs[:, worst]


@pytest.mark.parametrize("kind", ["f16", "f32"])
def test_a_power_of_an_integer_is_rounded_once(kind: str) -> None:
    base = values_of(kind)
    exponent = np.random.default_rng(0).integers(-9, 9, COUNT, np.int32)
    op = f"%y = math.fpowi %x0, %x1 : {kind}, i32"
    found = computed(op, base, exponent, types=(kind, "i32"), result=kind)
    assert ulps(found, exactly(np.power, base, exponent)).max() <= 0.5001


FPOWI = "%n = arith.constant {} : i64 %y = math.fpowi %x0, %n : f32, i64"


@pytest.mark.parametrize(
    ("op", "product"),
    [
        ("%two = arith.constant 2.0 : f32 %y = math.powf %x0, %two : f32", lambda x: x * x),
        (FPOWI.format(1), lambda x: x),
        (FPOWI.format(3), lambda x: x * x * x),
        (FPOWI.format(4), lambda x: x * x * (x * x)),
        (FPOWI.format(-1), lambda x: 1 / x),
    ],
)
def test_a_power_of_a_small_constant_is_a_product(op: str, product: Callable[[Array], Array]) -> None:
    values = values_of("f32")
    with np.errstate(all="ignore"):
        expected = product(values)
    np.testing.assert_array_equal(computed(op, values, types=("f32",), result="f32"), expected)
    assert "f64" not in kernel_math.program_of(op, ("f32",), "f32").text


def test_vectors_are_computed_by_element() -> None:
    op = text_beside(__file__, "VECTORS")
    values = np.array([0.5, -0.5, math.inf, -math.inf] * 64, np.float32)
    found = computed(op, values, types=("f32",), result="f32")
    expected = np.where(np.isinf(values), np.sign(values), 4.0 ** np.tanh(values.astype(np.float64)))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.skipif(find_ptxas() is None, reason="needs ptxas")
def test_ptxas_takes_all_of_it() -> None:
    lines = [f"%y{number} = math.{name} %x0 : f32" for number, name in enumerate([*ULPS, *EXACT])]
    sums = [f"%s{number + 1} = arith.addf %s{number}, %y{number} : f32" for number in range(len(lines))]
    last = f"%z = math.powf %s{len(lines)}, %x0 : f32 %y = math.copysign %z, %x0 : f32"
    body = "\n".join([*lines, "%s0 = arith.constant 0.0 : f32", *sums, last])
    program = kernel_math.program_of(body, ("f32",), "f32")
    assert (ptxas := find_ptxas())
    assert ptxas.assemble(program).binary


VECTOR_REMAINDER = """%v = vector.broadcast %x0 : f32 to vector<2xf32>
  %r = arith.remf %v, %v : vector<2xf32>
  %y = vector.extract %r[0] : f32 from vector<2xf32>"""
ALL_MATH = r"math\.absf, math\.absi, .*, math\.trunc"


@pytest.mark.parametrize(
    ("op", "message"),
    [
        ("%y = math.cbrt %x0 : f32", rf"^kernel: found math\.cbrt, allowed {ALL_MATH}$"),
        (VECTOR_REMAINDER, r"arith\.remf of vector<2xf32>, allowed scalars"),
    ],
)
def test_what_has_no_formula_is_refused_in_one_line(op: str, message: str) -> None:
    with fails(Stage.COMPILE, message):
        kernel_math.program_of(op, ("f32",), "f32")


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize("kind", ["f16", "f32"])
@pytest.mark.parametrize("name", ["sin", "cos", "tan", "atan", "sinh", "acosh"])
def test_a_rare_function_of_a_narrow_float_is_rounded_once(name: str, kind: str) -> None:
    values = values_of(kind)
    reference = getattr(np, name.replace("a", "arc", 1) if name.startswith("a") else name)
    assert ulps(unary(name, values, kind), exactly(reference, values)).max() <= 0.5001


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_an_exponent_of_64_bits_keeps_its_lowest_bit(kind: str) -> None:
    """As a float64, 2**53 + 1 is even."""
    base = np.resize(np.array([-1, -1, -1, 1, -math.inf, -0.0, 2.0, math.nan], DTYPES[kind]), THREADS)
    exponent = np.resize(np.array([2**53 + 1, -(2**53) - 1, 2**53, 2**53 + 1, 2**62 + 1, 3, -5, 0]), THREADS)
    op = f"%y = math.fpowi %x0, %x1 : {kind}, i64"
    found = computed(op, base, exponent, types=(kind, "i64"), result=kind)
    np.testing.assert_array_equal(found[:8], [-1, -1, 1, 1, -math.inf, -0.0, 2.0**-5, 1])
    assert np.signbit(found[5])


# ``arith.remf`` in kernels, against C's fmod.
@pytest.mark.drawn(2)
@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
def test_a_remainder_is_exact(kind: str) -> None:
    rng, shape = np.random.default_rng(0), (2, COUNT)
    with np.errstate(all="ignore"):
        pairs = edges_first(*rng.normal(size=shape) * 10 ** rng.uniform(-3, 3, shape)).astype(DTYPES[kind])
        expected = np.fmod(*pairs)
    found = computed(f"%y = arith.remf %x0, %x1 : {kind}", *pairs, types=(kind, kind), result=kind)
    require_same(found, expected)
