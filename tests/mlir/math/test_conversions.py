"""Every conversion between two types of numbers is right, for numbers at and beyond the ends of ranges too.

What is right is computed here from all numbers of the narrow type: numpy and ml_dtypes round some numbers
twice.
"""

from typing import Any

import numpy as np
import pytest

from tests.mlir.math.kernel_math import computed
from tests.support.program_compiler import compiler_of
from tests.texts import filled, text_beside
from tuner.core.candidate import TargetName
from tuner.core.errors import CandidateError
from tuner.core.numpy_types import DTYPES
from tuner.gpu.interpreter.host_functions import read_function
from tuner.models.execution import host_function

pytestmark = pytest.mark.mlir
Array = np.typing.NDArray[Any]
FLOATS = {"f8E5M2": 8, "f8E4M3FN": 8, "f16": 16, "bf16": 16, "f32": 32, "f64": 64}
INTEGERS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64}
SOURCES = (*FLOATS, *INTEGERS)
WITHOUT_INFINITY = "f8E4M3FN"
LARGEST = (448, 464, 57344, 61440, 65504, 65520, 3.3895313892515355e38, 3.4028235677973366e38)
ENDS = (0.5, *(2.0**bits for bits in (7, 8, 15, 16, 31, 32, 40, 63, 64)))
SPECIAL = (
    0.0,
    -0.0,
    np.inf,
    -np.inf,
    np.nan,
    1e-45,
    2.0**-10,
    2.0**-17,
    2.0**-25,
    2.0**-134,
    3e9,
    5e9,
    1.5e19,
)
STEPS = (0.0, 2.0**-40, -(2.0**-40), 2.0**-20, -(2.0**-20), 2.0**-9, 2.0**-12, 2.0**-4, 2.0**-3)  # relative


def conversions(source: str, target: str) -> tuple[str, ...]:
    """Returns the ops of arith that convert one type to another."""
    if source in FLOATS and target in FLOATS:
        wider = FLOATS[target] - FLOATS[source]
        return ("extf",) if wider > 0 else ("truncf",) if wider < 0 else ("convertf",) * (source != target)
    if source in FLOATS:
        return ("fptosi", "fptoui")
    if target in FLOATS:
        return ("sitofp", "uitofp")
    wider = INTEGERS[target] - INTEGERS[source]
    return ("extsi", "extui") if wider > 0 else ("trunci",) * (wider < 0)


def numbers_of(source: str) -> Array:
    """Returns all numbers of a type of up to 16 bits; of others those near ends and ties, and drawn ones."""
    dtype = DTYPES[source]
    rng = np.random.default_rng(0)
    if source == "i1":
        return rng.integers(0, 2, 77).astype(bool)
    if dtype.itemsize <= 2:
        return np.arange(1 << 8 * dtype.itemsize, dtype=f"u{dtype.itemsize}").view(dtype)
    bits = 8 * dtype.itemsize
    drawn = rng.integers(-(2 ** (bits - 1)), 2 ** (bits - 1), 2000).astype(f"i{dtype.itemsize}")
    if dtype.kind == "i":
        powers = [2**power for power in range(bits - 1)]
        near = [
            power + power // part + change
            for power in powers
            for part in (2**bits, 8, 16, 256, 512, 2048)
            for change in (-1, 0, 1)
        ]
        inside = [number for number in near if number < 2 ** (bits - 1)]
        return np.array([*inside, *(-number for number in inside), -(2 ** (bits - 1)), *drawn]).astype(dtype)
    with np.errstate(all="ignore"):
        edges = np.concatenate(
            [[*LARGEST, *ENDS, *SPECIAL], ties("bf16")[::97], ties("f16")[::97], ties("f8E5M2")]
        )
        near = [edges * (1 + step) for step in STEPS] + [edges - 1, edges + 0.5]
        both = np.concatenate(near)
        return np.concatenate([both.astype(dtype), (-both).astype(dtype), drawn.view(dtype)])


def grid(target: str) -> Array:
    """Returns the numbers of a narrow float from 0, and what follows the largest of them."""
    bits = FLOATS[target]
    numbers = np.arange(1 << (bits - 1), dtype=f"u{bits // 8}").view(DTYPES[target]).astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    return np.append(finite, 2 * finite[-1] - finite[-2])


def ties(target: str) -> Array:
    """Returns the numbers in the middle between two neighbours of a narrow float."""
    numbers = grid(target)
    return (numbers[1:] + numbers[:-1]) / 2


def rounded(values: Array, target: str) -> Array:
    """Returns numbers of extended precision rounded to a narrow float, as float64."""
    numbers = grid(target)
    size = np.abs(values)
    above = np.clip(np.searchsorted(numbers, size), 1, len(numbers) - 1)
    middle = (numbers[above - 1] + numbers[above]) / 2
    is_up = (size > middle) | ((size == middle) & (above % 2 == 0))
    nearest = np.where(is_up, above, above - 1)
    beyond = np.nan if target == WITHOUT_INFINITY else np.inf
    made = np.where(nearest == len(numbers) - 1, beyond, numbers[nearest])
    return np.copysign(np.where(np.isnan(values), np.nan, made), values)


def on_x86(number: float, target: str, *, is_signed: bool, is_double: bool) -> int:
    """Returns what eager PyTorch makes of a float, which the table of its conversions shows."""
    bits = INTEGERS[target]

    def converted(value: float, width: int) -> int:
        is_inside = abs(value) < 2.0 ** (width - 1)
        return int(value) if is_inside else -(2 ** (width - 1))

    if bits == 64 and not is_signed and number >= 2.0**63:
        return converted(number - 2.0**63, 64) ^ 2**63
    is_long = bits == 64 or (not is_signed and (bits == 32 or (bits == 8 and is_double)))
    return converted(number, 64 if is_long else 32)


def wrapped(numbers: list[int], target: str) -> Array:
    bits = INTEGERS[target]
    low = [number % 2**bits for number in numbers]
    if bits == 1:
        return np.array(low).astype(bool)
    return np.array([number - 2**bits * (number >> (bits - 1)) for number in low]).astype(DTYPES[target])


def expected(name: str, values: Array, source: str, target: str) -> Array:
    if source in FLOATS and target in INTEGERS:
        numbers = [
            on_x86(number, target, is_signed=name == "fptosi", is_double=source == "f64")
            for number in values.astype(np.float64).tolist()
        ]
        return wrapped(numbers, target)
    if source in INTEGERS:
        is_unsigned = name in ("extui", "uitofp")
        whole = [int(number) for number in values]
        if is_unsigned:
            whole = [number % 2 ** INTEGERS[source] for number in whole]
        elif source == "i1":
            whole = [-number for number in whole]
        if target in INTEGERS:
            return wrapped(whole, target)
        exact = np.array(whole, np.uint64 if is_unsigned else np.int64)
    else:
        exact = values.astype(np.float64)
    if FLOATS[target] > 16:
        return exact.astype(DTYPES[target])
    return rounded(exact.astype(np.longdouble), target)


def program(source: str, count: int) -> tuple[str, list[tuple[str, str]]]:
    """Returns a program with each conversion from a type, and the op and the type of each result."""
    pairs = [(name, target) for target in SOURCES for name in conversions(source, target)]
    kind = f"tensor<{count}x{source}>"
    kinds = [f"tensor<{count}x{target}>" for _, target in pairs]
    lines = [
        f"%y{number} = arith.{name} %x : {kind} to {result}"
        for number, ((name, _), result) in enumerate(zip(pairs, kinds, strict=True))
    ]
    values = ", ".join(f"%y{number}" for number in range(len(pairs)))
    holes = {"results": ", ".join(kinds), "lines": "\n".join(lines), "values": values}
    return filled(__file__, "PROGRAM", source=source, count=count, **holes), pairs


def run(text: str, arrays: tuple[Array, ...], way: str) -> tuple[Array, ...]:
    if way == "interpreted":
        return tuple(map(np.asarray, read_function(text, "main")(arrays, lambda _: None)))
    compiled = compiler_of(TargetName("cpu")).compile(text, as_fusions=way == "fusions")
    results = host_function(compiled, lambda _: None)(*arrays)
    return tuple(results) if isinstance(results, tuple | list) else (results,)


@pytest.mark.drawn(4)
@pytest.mark.parametrize("way", ["fusions", "whole", "interpreted"])
@pytest.mark.parametrize("source", SOURCES)
@np.errstate(all="ignore")
def test_each_conversion_rounds_once_and_is_as_on_x86_beyond_a_range(source: str, way: str) -> None:
    values = numbers_of(source)
    text, pairs = program(source, len(values))
    for found, (name, target) in zip(run(text, (values,), way), pairs, strict=True):
        right = expected(name, values, source, target)
        if target in FLOATS:
            found = found.astype(np.float64)
            right = right.astype(np.float64)
            number = ~np.isnan(right)
            np.testing.assert_array_equal(
                np.signbit(found[number]), np.signbit(right[number]), f"{name} {target}"
            )
        np.testing.assert_array_equal(found, right, f"{name} from {source} to {target}")


@pytest.mark.drawn(3)
@pytest.mark.parametrize(
    ("name", "source", "target"),
    [
        *(
            ("fptosi", "f32", "i8"),
            ("fptosi", "f64", "i64"),
            ("fptoui", "f32", "i32"),
            ("truncf", "f64", "f16"),
        ),
        *(
            ("truncf", "f64", "bf16"),
            ("sitofp", "i64", "bf16"),
            ("uitofp", "i64", "f16"),
            ("fptosi", "f16", "i64"),
        ),
    ],
)
@np.errstate(all="ignore")
def test_a_simulated_gpu_converts_as_the_processor(name: str, source: str, target: str) -> None:
    values = np.resize(numbers_of(source), 8192)
    found = computed(f"%y = arith.{name} %x0 : {source} to {target}", values, types=(source,), result=target)
    right = expected(name, values, source, target)
    wide = np.float64 if target in FLOATS else np.int64
    np.testing.assert_array_equal(found.astype(wide), right.astype(wide))


@pytest.mark.parametrize("way", ["fusions", "whole", "interpreted"])
def test_8_bit_floats_are_computed_in_f32_and_rounded(way: str) -> None:
    dtype = DTYPES["f8E4M3FN"]
    x = np.arange(256, dtype=np.uint8).view(dtype)
    y = np.random.default_rng(0).permutation(256).astype(np.uint8).view(dtype)
    found, found_more = run(text_beside(__file__, "BYTES"), (x, y), way)
    total = rounded(x.astype(np.longdouble) + y.astype(np.longdouble), "f8E4M3FN")
    product = rounded(total.astype(np.longdouble) / 2, "f8E4M3FN")
    is_more = product > x.astype(np.float64)
    np.testing.assert_array_equal(found_more, is_more)
    np.testing.assert_array_equal(found.astype(np.float64), np.where(is_more, -product, y.astype(np.float64)))


@pytest.mark.drawn(3)
@pytest.mark.parametrize("float_", ["tf32", "f80", "f128", "f8E4M3FNUZ", "f8E8M0FNU", "f6E2M3FN", "f4E2M1FN"])
def test_a_float_that_no_target_computes_is_named(float_: str) -> None:
    names = ("extf", "truncf") if float_ in ("f80", "f128") else ("truncf", "extf")
    text = filled(__file__, "OF_UNKNOWN_FLOAT", float=float_, op=names[0], back=names[1])
    with pytest.raises(
        CandidateError, match=rf"found {float_}, allowed f32, f64, bf16, f16, f8E4M3FN, f8E5M2"
    ):
        compiler_of(TargetName("cpu")).compile(text, as_fusions=True)


def test_an_integer_of_more_than_64_bits_is_named() -> None:
    with pytest.raises(
        CandidateError, match=r"arith.fptosi at .*: found f64 to i128, allowed integers of up to 64 bits"
    ):
        compiler_of(TargetName("cpu")).compile(text_beside(__file__, "OF_LONG_INTEGER"), as_fusions=True)
