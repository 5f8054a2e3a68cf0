"""Math of kernels as the simulated GPU computes it, against numpy in float64."""

import functools
import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.mlir.kernels import parsed
from tuner.core.chips import chip_of
from tuner.core.errors import CandidateError, Stage
from tuner.core.kernel_program import KernelBuffer, KernelProgram
from tuner.simulator.ptx.launch import simulate
from tuner.targets.gpu.ptxas import find_ptxas

pytestmark = pytest.mark.mlir

gpu_lowering = pytest.importorskip("tuner.mlir.gpu.lowering")

Array = NDArray[Any]
COUNT, THREADS = 1 << 14, 256
MANY = 1 << 16  # where the worst of all numbers counts
DTYPES: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "i1": np.bool_,
    "i8": np.int8,
    "i32": np.int32,
    "i64": np.int64,
}
# What the formulas say of themselves; exp2 is exact here, a device's ex2.approx may be off by two more.
ULPS = {
    **dict.fromkeys(("exp2", "sqrt"), 0.5),
    **dict.fromkeys(("exp", "log"), 1.0),
    **dict.fromkeys(("erf", "expm1", "log1p", "log2", "log10", "rsqrt"), 2.0),
    "tanh": 3.0,
}
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
EDGES = (
    *(0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 1.5, 2.5, 3.0, -3.0, math.inf, -math.inf, math.nan),
    *(1e-45, -1e-45, 1e-40, -1e-40, 2.0**-126, 2.0**-25, -(2.0**-25), 2.0**-12, 3.4e38, -3.4e38),
    *(0.49999997, 8388607.5, 8388609.0, -16777217.0, 33554432.0),  # where rounding to integers ends
    *(88.7, 88.8, 89.0, 104.0, -87.4, -103.9, -104.0, 127.9, 128.0, -126.5, -149.0, -150.0),  # where exp does
    *(0.70710677, 1.4142135, 0.92, 0.9199999, 4.0, 4.1, 10.0, 10.1, -17.4, -18.1),  # where formulas change
)


def program_of(op: str, arguments: tuple[str, ...], result: str, count: int = COUNT) -> KernelProgram:
    """Returns a kernel of one thread per element."""
    names = [f"%p{number}" for number in range(len(arguments))]
    parameters = ", ".join(
        f"{name}: memref<{count}x{kind}>" for name, kind in zip(names, arguments, strict=True)
    )
    loads = "\n".join(
        f"%x{number} = memref.load %p{number}[%i] : memref<{count}x{kind}>"
        for number, kind in enumerate(arguments)
    )
    text = f"""func.func @f({parameters}, %out: memref<{count}x{result}>) {{
      %one = arith.constant 1 : index
      %threads = arith.constant {THREADS} : index
      %blocks = arith.constant {count // THREADS} : index
      gpu.launch blocks(%bx, %by, %bz) in (%gx = %blocks, %gy = %one, %gz = %one)
                 threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %one, %sz = %one) {{
        %start = arith.muli %bx, %threads : index
        %i = arith.addi %start, %tx : index
        {loads}
        {op}
        memref.store %y, %out[%i] : memref<{count}x{result}>
        gpu.terminator
      }}
      return
    }}"""
    buffers = tuple(KernelBuffer(f"p{number}", count * 8, "input") for number in range(len(arguments)))
    with parsed(text) as module:
        program = gpu_lowering.lower_to_program(
            module, chip_of("sm_80"), (*buffers, KernelBuffer("out", count * 8, "output"))
        )
    assert isinstance(program, KernelProgram)
    return program


def computed(op: str, *arrays: Array, types: tuple[str, ...], result: str) -> Array:
    """Runs ``op``, from %x0, %x1, ... to %y, on the simulator."""
    program = program_of(op, types, result, len(arrays[0]))
    (launch,) = program.launches
    found = np.zeros(len(arrays[0]), DTYPES[result])
    held = {f"p{number}": array for number, array in enumerate(arrays)} | {"out": found}
    simulate(
        program.ptx, launch.kernel, launch.grid, launch.block, tuple(held[name] for name in launch.arguments)
    )
    return found


def unary(name: str, values: Array, kind: str) -> Array:
    return computed(f"%y = math.{name} %x0 : {kind}", values, types=(kind,), result=kind)


@functools.cache
def values_of(kind: str, count: int = COUNT) -> Array:
    """Returns any bit patterns, small and large numbers, numbers around one, and the edges."""
    dtype, rng = np.dtype(DTYPES[kind]), np.random.default_rng(0)
    with np.errstate(all="ignore"):
        parts = [
            rng.integers(0, 256, count // 4 * dtype.itemsize, np.uint8).view(dtype),
            rng.uniform(-5, 5, count // 4).astype(dtype),
            rng.uniform(-110, 110, count // 4).astype(dtype),
            rng.normal(1, 0.3, count // 4).astype(dtype),
        ]
        found = np.concatenate(parts)
        found[: len(EDGES)] = np.array(EDGES).astype(dtype)
        found[np.isnan(found.astype(np.float64))] = np.nan  # quiet ones
    return found


def ulps(found: Array, exact: Array) -> Array:
    """Returns the distances in units of the last place of the nearest number; infinity for another kind."""
    with np.errstate(all="ignore"):
        nearest = exact.astype(found.dtype)
        place = np.spacing(np.abs(np.where(np.isfinite(nearest), nearest, 1))).astype(np.float64)
        distance = np.abs(found.astype(np.float64) - exact) / place
    is_same = (found == nearest) | (np.isnan(found) & np.isnan(nearest))
    distance = np.where(is_same & ~np.isfinite(nearest), 0, distance)
    is_other_zero = (found == 0) & (nearest == 0) & (np.signbit(found) != np.signbit(nearest))
    return np.where(np.isnan(distance) | is_other_zero, math.inf, distance)


def of_doubles(function: Callable[..., Array], *values: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(function(*(array.astype(np.float64) for array in values)))


@pytest.mark.parametrize("name", ULPS)
def test_a_function_of_f32_is_as_close_as_it_says(name: str) -> None:
    values = values_of("f32", MANY)
    distance = ulps(unary(name, values, "f32"), of_doubles(REFERENCES[name], values))
    worst = int(np.argmax(distance))
    assert distance[worst] <= ULPS[name], values[worst]


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("name", ULPS)
def test_a_function_of_16_bits_is_that_of_f32_rounded(name: str, kind: str) -> None:
    values = values_of(kind)
    exact = of_doubles(REFERENCES[name], values)
    found = unary(name, values, kind)
    with np.errstate(all="ignore"):
        nearest = exact.astype(DTYPES[kind])
    same = (found == nearest) | (np.isnan(found) & np.isnan(nearest))
    assert same.mean() > 0.999  # but for exact results almost halfway between two numbers
    near = ulps(found.astype(np.float32), nearest.astype(np.float64))
    assert near.max() <= 2.0 ** (23 - (10 if kind == "f16" else 7))  # those are neighbours


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("name", EXACT)
def test_what_is_exact_is_exact(name: str, kind: str) -> None:
    values = values_of(kind)
    expected = of_doubles(EXACT[name], values).astype(values.dtype)
    found = unary(name, values, kind)
    np.testing.assert_array_equal(found.astype(np.float64), expected.astype(np.float64))
    number = ~np.isnan(found)
    np.testing.assert_array_equal(np.signbit(found[number]), np.signbit(expected[number]))


@pytest.mark.parametrize("name", ["sqrt", "rsqrt"])
def test_roots_of_f64_are_rounded(name: str) -> None:
    values = values_of("f64")
    with np.errstate(all="ignore"):
        expected = np.sqrt(values) if name == "sqrt" else 1 / np.sqrt(values)
    np.testing.assert_array_equal(unary(name, values, "f64"), expected)


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f64"])
def test_signs_are_copied(kind: str) -> None:
    size, sign = values_of(kind), np.roll(values_of(kind), 7)
    found = computed(f"%y = math.copysign %x0, %x1 : {kind}", size, sign, types=(kind, kind), result=kind)
    number = ~np.isnan(size)
    np.testing.assert_array_equal(found[number], np.copysign(size, sign)[number])
    assert np.isnan(found[~number]).all()
    np.testing.assert_array_equal(np.signbit(found[number]), np.signbit(sign[number]))


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f64"])
def test_a_product_and_a_sum_are_fused(kind: str) -> None:
    rng, dtype = np.random.default_rng(0), DTYPES[kind]
    a, b = (rng.standard_normal(THREADS).astype(dtype) for _ in range(2))
    c = -(a * b)  # what is left is what rounding the product lost
    op = f"%y = math.fma %x0, %x1, %x2 : {kind}"
    found = computed(op, a, b, c, types=(kind,) * 3, result=kind)
    assert np.count_nonzero(found) > THREADS // 2
    if kind != "f64":
        expected = of_doubles(lambda x, y, z: x * y + z, a, b, c).astype(dtype)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f64"])
def test_kinds_of_numbers_are_reported(kind: str) -> None:
    """One bit of the result for each kind."""
    values, names = values_of(kind), ("isfinite", "isinf", "isnan")
    lines = ["%y0 = arith.constant 0 : i32 %two = arith.constant 2 : i32"]
    for number, name in enumerate(names):
        lines += [
            f"%is{number} = math.{name} %x0 : {kind} %bit{number} = arith.extui %is{number} : i1 to i32",
            f"%z{number} = arith.muli %y{number}, %two : i32",
            f"%y{number + 1} = arith.addi %z{number}, %bit{number} : i32",
        ]
    op = "\n".join(lines).replace("%y3", "%y")
    found = computed(op, values, types=(kind,), result="i32")
    expected = [getattr(np, name)(values.astype(np.float64)) for name in names]
    np.testing.assert_array_equal(
        found, sum(each * weight for each, weight in zip(expected, (4, 2, 1), strict=True))
    )


@pytest.mark.parametrize("kind", ["i8", "i32", "i64"])
def test_bits_of_integers_are_counted(kind: str) -> None:
    width = int(kind[1:])
    rng = np.random.default_rng(0)
    values = rng.integers(0, 256, THREADS * width // 8, np.uint8).view(DTYPES[kind])
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


def test_a_power_is_rounded_once_and_has_the_edges_of_c99() -> None:
    base, exponent = (grid.ravel().astype(np.float32) for grid in np.meshgrid(EDGES, EDGES))
    rng = np.random.default_rng(0)
    size = MANY - len(base)
    base = np.concatenate([base, rng.lognormal(0, 3, size).astype(np.float32)])
    exponent = np.concatenate([exponent, rng.uniform(-30, 30, size).astype(np.float32)])
    found = computed("%y = math.powf %x0, %x1 : f32", base, exponent, types=("f32", "f32"), result="f32")
    distance = ulps(found, of_doubles(np.power, base, exponent))
    worst = int(np.argmax(distance))
    assert distance[worst] <= 0.5001, (base[worst], exponent[worst])


@pytest.mark.parametrize("kind", ["f16", "f32"])
def test_a_power_of_an_integer_is_rounded_once(kind: str) -> None:
    base = values_of(kind)
    exponent = np.random.default_rng(0).integers(-9, 9, COUNT, np.int32)
    found = computed(
        f"%y = math.fpowi %x0, %x1 : {kind}, i32", base, exponent, types=(kind, "i32"), result=kind
    )
    expected = of_doubles(np.power, base, exponent)
    assert ulps(found, expected).max() <= 0.5001


@pytest.mark.parametrize("square", ["%two = arith.constant 2.0 : f32 %y = math.powf %x0, %two : f32"])
def test_a_square_is_one_product(square: str) -> None:
    values = values_of("f32")
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(computed(square, values, types=("f32",), result="f32"), values * values)
    assert "f64" not in program_of(square, ("f32",), "f32").ptx


def test_vectors_are_computed_by_element() -> None:
    op = """%v = vector.broadcast %x0 : f32 to vector<2x4xf32>
      %two = arith.constant dense<2.0> : vector<2x4xf32>
      %e = math.tanh %v : vector<2x4xf32>
      %is = math.isinf %v : vector<2x4xf32>
      %f = math.floor %e : vector<2x4xf32>
      %g = math.exp2 %e : vector<2x4xf32>
      %p = math.powf %g, %two : vector<2x4xf32>
      %s = arith.select %is, %f, %p : vector<2x4xi1>, vector<2x4xf32>
      %y = vector.extract %s[1, 2] : f32 from vector<2x4xf32>"""
    values = np.array([0.5, -0.5, math.inf, -math.inf] * 64, np.float32)
    found = computed(op, values, types=("f32",), result="f32")
    expected = np.where(np.isinf(values), np.sign(values), 4.0 ** np.tanh(values.astype(np.float64)))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.skipif(find_ptxas() is None, reason="needs ptxas")
def test_ptxas_takes_all_of_it() -> None:
    lines = [f"%y{number} = math.{name} %x0 : f32" for number, name in enumerate([*ULPS, *EXACT])]
    sums = [f"%s{number + 1} = arith.addf %s{number}, %y{number} : f32" for number in range(len(lines))]
    last = f"%z = math.powf %s{len(lines)}, %x0 : f32 %y = math.copysign %z, %x0 : f32"
    zero = "%s0 = arith.constant 0.0 : f32"
    program = program_of("\n".join([*lines, zero, *sums, last]), ("f32",), "f32")
    ptxas = find_ptxas()
    assert ptxas is not None
    assert ptxas.assemble(program).cubin


@pytest.mark.parametrize(
    ("op", "kind", "message"),
    [
        ("math.exp", "f64", r"^kernel: math\.exp: found f64, allowed f16, bf16, f32$"),
        ("math.sin", "f32", r"^kernel: found math\.sin, allowed math\.absf, math\.absi, .*, math\.trunc$"),
    ],
)
def test_what_has_no_formula_is_refused_in_one_line(op: str, kind: str, message: str) -> None:
    with pytest.raises(CandidateError, match=message) as failure:
        program_of(f"%y = {op} %x0 : {kind}", (kind,), kind)
    assert failure.value.stage is Stage.COMPILE


def test_an_exponent_of_more_than_32_bits_is_refused() -> None:
    message = r"^kernel: math\.fpowi: found an exponent of i64, allowed up to 32 bits$"
    with pytest.raises(CandidateError, match=message):
        program_of("%y = math.fpowi %x0, %x1 : f32, i64", ("f32", "i64"), "f32")
