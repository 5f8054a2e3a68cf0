"""The GPU dialect's ops among threads, for every type that they take, compared with numpy."""

from typing import Any

import numpy as np
import pytest

from benchmarks.fuzzing.program_check import SIMULATOR
from benchmarks.program_compiler import compiler_of
from tests.programs.interpreter.lane_kernels import numbered
from tests.programs.kernel_programs import ARRAY, arrays, program, ran, store
from tests.texts import text_beside
from tuner.programs.run.device_function import DeviceFunction
from tuner.programs.run.marshalling import dtype_of
from tuner.simulator.device.simulated_device import SimulatedDevice
from tuner.simulator.device.streams import ORDERS

pytestmark = pytest.mark.mlir


DTYPES = {name: dtype_of(name) for name in ("i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64")}
OF_FLOATS: dict[str, Any] = {
    "add": np.add,
    "minnumf": np.minimum,
    "maxnumf": np.maximum,
    "minimumf": np.minimum,
    "maximumf": np.maximum,
}
OF_INTEGERS: dict[str, Any] = {
    "add": np.add,
    "mul": np.multiply,
    "minsi": np.minimum,
    "maxsi": np.maximum,
    "minui": lambda a, b: np.minimum(*(each.view(f"u{each.itemsize}") for each in (a, b))).view(a.dtype),
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def result(body: str, element: str, **more: Any) -> tuple[Any, Any]:
    x, y = arrays(DTYPES[element])
    order = more.pop("order", "fifo")
    ran(program(f"{body} {store('%r', element)}", element=element, **more), x, y, order=order)
    return x, y


NAMES = ("r", "d", "w", "moved", "ok")  # of values in the bodies


def results(bodies: dict[str, str], element: str) -> tuple[Any, dict[str, Any]]:
    """Returns x, and for each body by its name the %r that threads have: all of one program."""
    x, _ = arrays(DTYPES[element])
    found = {name: np.zeros_like(x) for name in bodies}
    array = ARRAY.replace("f32", element)
    lines = [
        f"{numbered(body, number, NAMES)} {store(f'%r{number}', element, f'%out{number}')}"
        for number, body in enumerate(bodies.values())
    ]
    outputs = ", ".join(f"%out{number}: {array}" for number in range(len(bodies)))
    ran(program("\n".join(lines), element=element, more=outputs), x, np.zeros_like(x), *found.values())
    return x, found


def reduced(ufunc: Any, x: Any, size: int) -> Any:
    """Returns every element's row of ``size`` neighbours reduced."""
    rows = x.reshape(-1, size)
    total = rows[:, 0]
    for column in rows.T[1:]:
        total = ufunc(total, column)
    return np.repeat(total, size).reshape(x.shape).astype(x.dtype)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("element", DTYPES)
def test_reductions_of_a_block_of_subgroups_and_of_clusters(element: str) -> None:
    ufuncs = OF_FLOATS if "f" in element else OF_INTEGERS
    kinds = f"({element}) -> ({element})"
    of_blocks = {name: f"%r = gpu.all_reduce {name} %v uniform {{}} : {kinds}" for name in ufuncs}
    clusters = {32: "", 8: "cluster(size = 8)", 4: "cluster(size = 4)"}
    of_lanes = {f"{n}": f"%r = gpu.subgroup_reduce add %v {text} : {kinds}" for n, text in clusters.items()}
    x, found = results(of_blocks | of_lanes, element)
    for name, ufunc in ufuncs.items():
        np.testing.assert_array_equal(found[name], reduced(ufunc, x, 64), name)
    for size in clusters:
        np.testing.assert_array_equal(found[str(size)], reduced(np.add, x, size), f"of {size} lanes")


def test_clusters_of_threads_that_are_apart_and_vectors_by_their_elements() -> None:
    body = "%r = gpu.subgroup_reduce add %v uniform cluster(size = 8, stride = 4) : (i32) -> (i32)"
    x, y = result(body, "i32")
    expected = x.reshape(2, 2, 8, 4).sum(2, keepdims=True)
    np.testing.assert_array_equal(y, np.broadcast_to(expected, (2, 2, 8, 4)).reshape(2, 64))
    x, y = result(text_beside(__file__, "OF_A_VECTOR"), "f32")
    np.testing.assert_array_equal(y, reduced(np.add, x, 32))


@pytest.mark.drawn(2)
@pytest.mark.parametrize("order", ORDERS)
def test_reductions_in_loops_and_branches(order: str) -> None:
    x, y = result(text_beside(__file__, "REDUCTIONS"), "f32", order=order)
    largest = 3 * x.max(axis=1)
    np.testing.assert_array_equal(y, np.repeat([[largest[0]], [64 * largest[1]]], 64, 1))


@pytest.mark.drawn(2)
@pytest.mark.parametrize("threads", [1, 5, 31, 33, 40, 64])
def test_blocks_whose_last_warp_is_not_whole(threads: int) -> None:
    body = f"%r = gpu.all_reduce add %v uniform {{}} : (i32) -> (i32) {store('%r', 'i32')}"
    x, y = arrays(np.int32)
    text = program(body, element="i32", more="%threads: index").replace("%sx = %c64", "%sx = %threads")
    ran(text, x, y, threads)
    np.testing.assert_array_equal(y[:, :threads], np.repeat(x[:, :threads].sum(1, keepdims=True), threads, 1))


@pytest.mark.drawn(2)
@pytest.mark.parametrize("element", DTYPES)
def test_shuffles_of_every_size(element: str) -> None:
    bodies = {
        mode: f"""%d = arith.constant {distance} : i32 %w = arith.constant 32 : i32
        %moved, %ok = gpu.shuffle {mode} %v, %d, %w : {element}
        %r = arith.select %ok, %moved, %v : {element}"""
        for mode, distance in {"xor": 1, "up": 3, "down": 3, "idx": 7}.items()
    }
    x, found = results(bodies, element)
    lane = np.arange(32)
    sources = {"xor": lane ^ 1, "up": lane - 3, "down": lane + 3, "idx": 0 * lane + 7}
    for mode, source in sources.items():
        source = np.where((source < 0) | (source > 31), lane, source)
        np.testing.assert_array_equal(found[mode], x.reshape(2, 2, 32)[:, :, source].reshape(2, 64), mode)


OF_FRAGMENTS = {
    "addf": np.add,
    "subf": np.subtract,
    "mulf": np.multiply,
    "divf": np.divide,
    "maxf": np.maximum,
    "minf": np.minimum,
    "negatef": np.negative,
}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("element", ["f16", "f32"])
@pytest.mark.parametrize("name", OF_FRAGMENTS)
def test_elementwise_operations_of_tensor_core_fragments(name: str, element: str) -> None:
    """Those that upstream does not know among them."""
    rng, count = np.random.default_rng(0), 1 if name == "negatef" else 2
    a, b = (rng.integers(1, 5, (16, 16)).astype(DTYPES[element]) for _ in range(2))
    expected = OF_FRAGMENTS[name](*(a, b)[:count])
    matrix, kind = f'!gpu.mma_matrix<16x16x{element}, "COp">', f"memref<16x16x{element}>"
    inputs = f"{', '.join(('%x', '%y')[:count])} : ({', '.join([matrix] * count)})"
    text = text_beside(__file__, "FRAGMENT").replace("INPUTS", inputs)
    ran(text.replace("NAME", name).replace("KIND", kind).replace("TYPE", element), a, b)
    np.testing.assert_array_equal(a, expected)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("high", ["%c8", "%n"])
@pytest.mark.parametrize("first", ["block_x", "block_y", "thread_y", "sequential"])
def test_loops_that_are_mapped_to_processors(first: str, high: str) -> None:
    x, y = np.arange(32, dtype=np.float32).reshape(8, 4), np.zeros((8, 4), np.float32)
    text = text_beside(__file__, "LOOPS").replace("FIRST", first).replace("SECOND", "thread_x")
    ran(text.replace("HIGH", high), x, y, 8)
    np.testing.assert_array_equal(y, x)


LAUNCHES_IN_A_LOOP = text_beside(__file__, "LAUNCHES_IN_A_LOOP")


@pytest.mark.parametrize("order", ORDERS)
def test_launches_in_a_parallel_loop(order: str) -> None:
    x, y = np.arange(32, dtype=np.float32).reshape(8, 4), np.zeros((8, 4), np.float32)
    ran(LAUNCHES_IN_A_LOOP, x, y, order=order)
    np.testing.assert_array_equal(y, x)


TWO_MODULES = text_beside(__file__, "TWO_MODULES")


def test_functions_that_kernels_of_two_modules_call() -> None:
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    ran(TWO_MODULES, x, y)
    np.testing.assert_array_equal(y, 4 * x * x)


def test_what_kernels_print_is_shown() -> None:
    x, y = arrays()
    shown: list[str] = []
    device = SimulatedDevice("sm_90", write=shown.append)
    code = compiler_of(SIMULATOR).compile(program(text_beside(__file__, "PRINTS"))).code
    loaded = DeviceFunction(code, device)
    loaded(x, y)
    loaded.close()
    assert "".join(shown) == "".join(f"block {block}: {x[block, 0]:f}\n" for block in range(2))
