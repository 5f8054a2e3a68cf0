"""Whole programs on the simulated GPU: the examples against numpy, random ones against loops on the host."""

import math
import re
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import tuner
from tests.models.file_check import filled
from tests.models.kernel_programs import called
from tests.models.payload_runs import traced
from tests.support.fuzzing.host_programs import RandomProgram, host_programs
from tests.support.fuzzing.program_check import SIMULATOR, check_program
from tests.support.program_compiler import compiler_of
from tests.texts import text_beside
from tuner.core.device import STREAM_ORDERS
from tuner.core.device_programs import DEFAULTS, FORMS, DeviceOptions
from tuner.core.errors import TunerError

pytestmark = pytest.mark.mlir
EXAMPLES = Path(__file__).parents[2] / "examples"


def compiled(name: str, **options: Any) -> Any:
    return tuner.compile_program(EXAMPLES / f"{name}.mlir", "simulator", **options)


def arrays(*shapes: tuple[int, ...]) -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    return tuple(rng.standard_normal(shape).astype(np.float32) for shape in shapes)


def gelu(a: Any, b: Any) -> Any:
    product = a.astype(np.float64) @ b
    return product / 2 * (1 + np.vectorize(math.erf)(product / math.sqrt(2)))


def softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(1, keepdims=True).astype(np.float64))
    return powers / powers.sum(1, keepdims=True)


def rms_norm(x: Any) -> Any:
    wide = x.astype(np.float64)
    return wide / np.sqrt(np.mean(wide**2, 1, keepdims=True) + 1e-6)


EXAMPLE_PROGRAMS = [
    *(("async_matmul", form, np.matmul, np.float32, [(84, 32), (32, 84)], 0.0) for form in FORMS),
    ("matmul_gelu", "streams", gelu, np.float32, [(64, 32), (32, 48)], 1e-5),
    ("softmax", "streams", softmax, np.float32, [(40, 96)], 2e-6),
    ("rms_norm", "streams", rms_norm, np.float16, [(40, 96)], 2**-10),  # an f16 has 11 bits
]


@pytest.mark.drawn(3)
@pytest.mark.parametrize(("name", "form", "function", "dtype", "shapes", "rtol"), EXAMPLE_PROGRAMS)
def test_examples_give_what_numpy_gives(
    name: str, form: str, function: Any, dtype: Any, shapes: list[tuple[int, int]], rtol: float
) -> None:
    program = compiled(name, form=form, order="lifo")
    inputs = [(1 if name == "async_matmul" else 4) * array.astype(dtype) for array in arrays(*shapes)]
    expected = function(*inputs)
    if name == "async_matmul":  # writes to an argument
        result = np.zeros((84, 84), np.float32)
        program(*inputs, result)
    else:
        result = program(*inputs)
    np.testing.assert_allclose(result, expected, rtol=rtol, atol=1e-5)
    program.close()
    assert program.device.reports == ()


@cache
def code_of_products(second: int, options: DeviceOptions = DEFAULTS) -> Any:
    """Returns a program that adds a product to the first 8 rows of %c, and one to 8 from ``second`` on."""
    text = text_beside(__file__, "TWO_PRODUCTS").replace("OFFSET", str(16 * second))
    return compiler_of(SIMULATOR).compile(text.replace("SECOND", str(second)), None, None, options).code


@pytest.mark.drawn(1)
@pytest.mark.parametrize("order", ["lifo", "random"])
def test_two_matmuls_run_on_two_streams_that_join_before_the_sum(order: str) -> None:
    a, b, c, d = arrays((64, 128), (128, 64), (64, 96), (96, 64))
    code = compiler_of(SIMULATOR).compile((EXAMPLES / "two_matmuls.mlir").read_text()).code
    trace, result = traced(code, a, b, c, d, order=order)
    np.testing.assert_allclose(result, a @ b + c @ d, rtol=0, atol=2e-5)
    launches = [number for number, line in enumerate(trace) if line.startswith("launch")]
    first, second, last = (_stream(trace[number]) for number in launches)
    assert first != second
    assert last in (first, second)
    other = launches[0] if last == second else launches[1]
    assert _has_wait(trace[other : launches[2]], _stream(trace[other]), last)


FACTORS = arrays((8, 4), (4, 16), (8, 4), (4, 16))


@pytest.mark.parametrize("order", STREAM_ORDERS)
@pytest.mark.parametrize("second", [8, 5])
def test_products_in_parts_of_one_buffer_give_what_numpy_gives(second: int, order: str) -> None:
    a, b, d, e = FACTORS
    (c,) = arrays((16, 16))
    expected = c.copy()
    expected[:8] += a @ b
    expected[second : second + 8] += d @ e
    called(code_of_products(second), *FACTORS, c, order=order)
    np.testing.assert_allclose(c, expected, rtol=0, atol=1e-5)


def test_products_in_the_halves_of_one_buffer_are_on_two_streams_and_others_in_order() -> None:
    options = DeviceOptions(device_arguments=True)
    for second, slots in ((8, 2), (7, 1)):
        assert code_of_products(second, options).stream_slots == slots
    trace, _ = traced(code_of_products(8), *FACTORS, *arrays((16, 16)))
    launches = [number for number, line in enumerate(trace) if line.startswith("launch")]
    one, other = (_stream(trace[number]) for number in launches)
    assert one != other
    assert not _has_wait(trace[launches[0] : launches[1]], one, other)


def _stream(line: str) -> str:
    return line.rsplit(" ", 1)[1]


def _has_wait(lines: list[str], stream: str, other: str) -> bool:
    recorded = re.findall(rf"^record (e\d+) on {stream}$", "\n".join(lines), re.MULTILINE)
    return any(f"wait for {event} on {other}" in lines for event in recorded)


def test_unordered_work_is_found_and_gpux_runs_on_streams_of_its_own_or_the_callers() -> None:
    program = compiled("gpux_own_streams", order="lifo")
    assert program.program.stream_slots == 3  # the caller's and two of its own
    for _ in range(3):
        a, b, c, d = arrays((128,), (128,), (128,), (128,))
        program(a, b, c, d)
        np.testing.assert_array_equal(c, 2 * a)
        np.testing.assert_array_equal(d, 3 * b)
        counts = program.device.counts
        assert (counts.streams_created, counts.modules_loaded) == (3, 1)
    program.close()
    assert program.device.reports == ()
    program = compiled("gpux_users_stream")
    stream = program.device.create_stream()
    a, b = arrays((128,), (128,))
    program(a, b, stream=stream)
    np.testing.assert_array_equal(b, 2 * a)
    trace, _ = traced(program.program, a, b)
    assert set(re.findall(r" on (\w+)", "\n".join(trace))) == {"s0"}
    program.close()
    assert program.device.reports == ()
    text = PROGRAMS["own streams"].replace("gpux.wait %s\n", "\n")
    program = tuner.compile_program(text, "simulator", order="lifo")
    program(np.arange(16, dtype=np.float32), True)
    assert any("nothing orders" in str(report) for report in program.device.reports)  # type: ignore[union-attr]
    launch = "gpux.launch_func %s @m::@add"
    text = PROGRAMS["own streams"].replace(launch, f"cf.br ^next\n^next:\n{launch}")
    with pytest.raises(TunerError, match="found @region with several blocks and streams, allowed one block"):
        tuner.compile_program(text, "simulator")


@pytest.mark.slow
@hypothesis.settings(max_examples=20, suppress_health_check=list(hypothesis.HealthCheck), derandomize=True)
@hypothesis.given(host_programs(), st.sampled_from(FORMS), st.sampled_from(STREAM_ORDERS))
def test_random_programs_do_as_on_the_host(program: RandomProgram, form: str, order: str) -> None:
    check_program(program, form, order)


ARGUMENTS, STREAM = "%a: memref<16xf32>, %first: i1", "!gpux.StreamType"
GIVEN = f"%p: {STREAM}, {ARGUMENTS}, %q: {STREAM}"
PROGRAMS = {
    "own streams": filled(__file__, "MODULE", arguments=ARGUMENTS, begin=text_beside(__file__, "OWN")),
    "streams as arguments": filled(__file__, "MODULE", arguments=GIVEN, begin=""),
}


@pytest.mark.parametrize(
    ("target", "order"), [("cpu", "fifo"), *(("simulator", each) for each in STREAM_ORDERS)]
)
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_regions_run_on_the_stream_that_was_chosen(name: str, first: bool, target: str, order: str) -> None:
    program = tuner.compile_program(PROGRAMS[name], target, order=order)
    a = np.arange(16, dtype=np.float32)
    program(a, first)
    assert np.array_equal(a, np.arange(16) + 4)
    assert not getattr(getattr(program, "device", None), "reports", ())


@pytest.mark.parametrize("options", [{"form": "tokens"}, {"form": "sync"}, {"pinned": True}])
def test_words_that_say_nothing_to_gpux_are_refused(options: dict[str, object]) -> None:
    refused = rf"{next(iter(options))}.* cannot be combined with a program that .*\(GPUX\)"
    with pytest.raises(TunerError, match=refused):
        tuner.compile_program(PROGRAMS["own streams"], "simulator", **options)  # type: ignore[arg-type]
