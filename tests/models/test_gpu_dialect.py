"""The GPU dialect among threads, compared with numpy; memory of kernels, copies of parts, lines of faults."""

from contextlib import closing
from functools import reduce
from typing import Any

import numpy as np
import pytest

from tests.default_suite import ALL
from tests.gpu.interpreter.lane_kernels import numbered
from tests.mlir.kernels import parsed
from tests.models.file_check import filled
from tests.models.kernel_programs import ARRAY, arrays, program, ran, store
from tests.support.fuzzing.program_check import SIMULATOR
from tests.support.program_compiler import compiler_of
from tests.texts import text_beside
from tuner.core.device import STREAM_ORDERS
from tuner.core.device_programs import FORMS, DeviceOptions
from tuner.core.errors import CandidateError, DeviceError
from tuner.core.gpu import chip_of
from tuner.core.numpy_types import dtype_of
from tuner.gpu.mlir.lowering import kernels_to_ptx, outline_kernels, without_debug_sections
from tuner.gpu.ptxsim.device.simulated_device import SimulatedDevice
from tuner.gpu.run.device_function import DeviceFunction

pytestmark = pytest.mark.mlir
DTYPES = {name: dtype_of(name) for name in ("i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64")}
OF_FLOATS: dict[str, Any] = {"add": np.add, "minnumf": np.minimum, "maxnumf": np.maximum}
OF_FLOATS |= {"minimumf": np.minimum, "maximumf": np.maximum}
OF_INTEGERS: dict[str, Any] = {"add": np.add, "mul": np.multiply, "minsi": np.minimum, "maxsi": np.maximum}
OF_INTEGERS |= {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
OF_INTEGERS |= {"minui": lambda *both: np.minimum(*(each.view(f"u{each.itemsize}") for each in both))}
NAMES = ("r", "d", "w", "moved", "ok")  # of values in the bodies


def result(body: str, element: str, order: str = "fifo") -> tuple[Any, Any]:
    x, found = results({"": body}, element, order)
    return x, found[""]


def results(bodies: dict[str, str], element: str, order: str = "fifo") -> tuple[Any, dict[str, Any]]:
    """Returns x, and for each body by its name the %r that threads have: all of one program."""
    x, _ = arrays(DTYPES[element])
    found = {name: np.zeros_like(x) for name in bodies}
    array = ARRAY.replace("f32", element)
    lines = [
        f"{numbered(body, number, NAMES)} {store(f'%r{number}', element, f'%out{number}')}"
        for number, body in enumerate(bodies.values())
    ]
    outputs = ", ".join(f"%out{number}: {array}" for number in range(len(bodies)))
    text = program("\n".join(lines), element=element, more=outputs)
    ran(text, x, np.zeros_like(x), *found.values(), order=order)
    return x, found


def reduced(ufunc: Any, x: Any, size: int) -> Any:
    """Returns every element's row of ``size`` neighbours reduced."""
    total = reduce(ufunc, x.reshape(-1, size).T)
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
@pytest.mark.parametrize("order", STREAM_ORDERS)
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
    lane, text = np.arange(32), text_beside(__file__, "SHUFFLED").replace("TYPE", element)
    shuffles = {"xor": (1, lane ^ 1), "up": (3, lane - 3), "down": (3, lane + 3), "idx": (7, 0 * lane + 7)}
    bodies = {mode: text.replace("MODE", mode).replace("BY", str(by)) for mode, (by, _) in shuffles.items()}
    x, found = results(bodies, element)
    for mode, (_, source) in shuffles.items():
        source = np.where((source < 0) | (source > 31), lane, source)
        np.testing.assert_array_equal(found[mode], x.reshape(2, 2, 32)[:, :, source].reshape(2, 64), mode)


OF_FRAGMENTS: dict[str, Any] = {"addf": np.add, "subf": np.subtract, "mulf": np.multiply, "divf": np.divide}
OF_FRAGMENTS |= {"maxf": np.maximum, "minf": np.minimum, "negatef": np.negative}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("element", ["f16", "f32"])
@pytest.mark.parametrize("name", OF_FRAGMENTS)
def test_elementwise_operations_of_tensor_core_fragments(name: str, element: str) -> None:
    """Those that upstream does not know among them."""
    rng, count = np.random.default_rng(0), 1 if name == "negatef" else 2
    a, b = (rng.integers(1, 5, (16, 16)).astype(DTYPES[element]) for _ in range(2))
    expected = OF_FRAGMENTS[name](*(a, b)[:count])
    inputs = f"{', '.join(('%x', '%y')[:count])} : ({', '.join(['!matrix'] * count)})"
    ran(filled(__file__, "FRAGMENT", type=element, kind=name, inputs=inputs), a, b)
    np.testing.assert_array_equal(a, expected)


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize("high", ["%c8", "%n"])
@pytest.mark.parametrize("first", ["block_x", "block_y", "thread_y", "sequential"])
def test_loops_that_are_mapped_to_processors(first: str, high: str) -> None:
    x, y = np.arange(32, dtype=np.float32).reshape(8, 4), np.zeros((8, 4), np.float32)
    ran(filled(__file__, "LOOPS", first=first, second="thread_x", high=high), x, y, 8)
    np.testing.assert_array_equal(y, x)


@pytest.mark.parametrize("order", STREAM_ORDERS)
def test_launches_in_a_parallel_loop_and_shared_memory_next_to_attributions(order: str) -> None:
    x, y = np.arange(32, dtype=np.float32).reshape(8, 4), np.zeros((8, 4), np.float32)
    ran(text_beside(__file__, "LAUNCHES_IN_A_LOOP"), x, y, order=order)
    np.testing.assert_array_equal(y, x)
    attributions = "workgroup(%w0 : memref<64xf32, 3>) private(%p0 : memref<4xf32, 5>)"
    before = "%h = memref.alloc() : memref<4xf32> memref.store %f, %h[%c0] : memref<4xf32>"
    text = program(text_beside(__file__, "BESIDE_ATTRIBUTIONS"), attributions, "%f: f32", before)
    text = text.replace("  return", "  memref.dealloc %h : memref<4xf32>\n  return")
    check(text, lambda x: 2 * x + x[:, ::-1] + 3, 3.0, order=order)


def test_functions_of_two_modules_and_buffers_of_one_turn_of_a_loop() -> None:
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    ran(text_beside(__file__, "TWO_MODULES"), x, y)
    np.testing.assert_array_equal(y, 4 * x * x)
    check(program(text_beside(__file__, "TWO_BUFFERS")), lambda x: 3 * x[:, ::-1])


WORDS = "#gpu.address_space<workgroup>"
REVERSE = text_beside(__file__, "REVERSE")
VIEWS = text_beside(__file__, "VIEWS")
BESIDE = "%mine = memref.alloc() : memref<64xf32, 3> memref.store %v, %mine[%tx] : memref<64xf32, 3>\n"
SUM = text_beside(__file__, "SUM")
ASKED = "dynamic_shared_memory_size %size"


def check(text: str, expected: Any, *more: Any, order: str = "fifo", form: Any = "streams") -> None:
    x, y = arrays()
    ran(text, x, y, *more, order=order, options=DeviceOptions(form=form))
    np.testing.assert_array_equal(y, expected(x))


def reversed_rows(x: Any) -> Any:
    return x[:, ::-1]


@pytest.mark.drawn(2)
@pytest.mark.parametrize("space", ["3", "3 : i32", WORDS, "#gpu.memory_space<workgroup>"])
@pytest.mark.parametrize("kind", ["alloc", "alloca"])
def test_shared_memory_in_every_spelling(space: str, kind: str) -> None:
    made = f"%s = memref.{kind}() : memref<64xf32, {space}>"
    check(program(f"{made} {REVERSE.replace('SPACE', space)}"), reversed_rows)


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize("space", ["", ", 5", ", #gpu.address_space<private>"])
@pytest.mark.parametrize("kind", ["alloc", "alloca"])
def test_a_threads_own_memory_first_in_the_kernel_and_in_a_loop(space: str, kind: str) -> None:
    own = f"memref<4xf32{space}>"
    body = filled(__file__, "OWN_IN_A_LOOP", kind=kind, own=own, stored=store("%w"))
    check(program(body), lambda x: x * (1 + np.arange(64) % 4).astype(np.float32))


@pytest.mark.drawn(2)
@pytest.mark.parametrize("order", STREAM_ORDERS)
def test_shared_memory_in_loops_and_branches_without_deallocations(order: str) -> None:
    check(program(text_beside(__file__, "LOOPS_AND_BRANCHES")), lambda x: x + x[:, ::-1], order=order)


def test_dynamic_shared_memory_has_the_bytes_of_its_views_or_a_size_that_suffices() -> None:
    check(program(VIEWS), reversed_rows)
    check(program(VIEWS.replace(WORDS, "3")), reversed_rows)
    check(program(BESIDE + VIEWS + SUM), lambda x: x + x[:, ::-1])
    check(program(VIEWS, ASKED, "%size: i32"), reversed_rows, 512)
    check(program(BESIDE + VIEWS + SUM, ASKED, "%size: i32"), lambda x: x + x[:, ::-1], 512)
    with pytest.raises(DeviceError, match="out of bounds"):
        check(program(VIEWS, ASKED, "%size: i32"), reversed_rows, 508)
    views = VIEWS.replace("%block[%at]", "%block[%place]")
    size = "%size = arith.constant 512 : i32"
    check(program(views, ASKED, "%place: index", size), reversed_rows, 256)
    with pytest.raises(CandidateError, match="found a place that is not constant"):
        check(program(views, more="%place: index"), reversed_rows, 256)
    size = "%size = arith.constant 511 : i32"
    with pytest.raises(CandidateError, match="found dynamic_shared_memory_size 511, allowed at least 512"):
        check(program(VIEWS, ASKED, before=size), reversed_rows)


def line_of(text: str, part: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if part in line)


def test_an_access_out_of_bounds_and_a_race_are_reported_with_their_lines() -> None:
    text = program(text_beside(__file__, "OUT_OF_BOUNDS"))
    place = f"at line {line_of(text, '[%c1, %far]')}:"
    with pytest.raises(DeviceError, match=rf"ld\.global.*\({place}\d+\): out of bounds"):
        ran(text, *arrays())
    text, device = program(text_beside(__file__, "RACE")), SimulatedDevice("sm_90")
    with closing(DeviceFunction(compiler_of(SIMULATOR).compile(text, None, None).code, device)) as loaded:
        loaded(*arrays())
    assert f"(at line {line_of(text, '%s[%r]')}:" in " ".join(map(str, device.reports))


def test_code_for_a_gpu_is_the_same_but_for_the_places() -> None:
    def ptx(*, has_lines: bool) -> list[str]:
        with parsed(program(store("%v"))) as module:
            alignment_bytes = outline_kernels(module, chip_of("sm_90"))
            text = kernels_to_ptx(module, chip_of("sm_90"), alignment_bytes, has_lines=has_lines)
        return without_debug_sections(text).splitlines()

    marks = ("\t.loc", "\t.file", "$L__")
    plain = [line for line in ptx(has_lines=True) if not line.startswith(marks) and line]
    assert plain == [line for line in ptx(has_lines=False) if line]
    assert any(".loc" in line for line in ptx(has_lines=True))


NUMBERS: dict[str, float] = {"i8": -5, "i16": -300, "i32": 70000, "i64": 5000000000}
NUMBERS |= {"f16": 1.5, "bf16": 1.5, "f32": 1.5, "f64": 1.1}


def copying(lines: str, element: str = "f32") -> str:
    return filled(__file__, "COPYING", element=element, lines=lines)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("element", NUMBERS)
def test_fills_of_every_size(element: str, form: Any) -> None:
    number = NUMBERS[element]
    fill = f"%k = arith.constant {number} : {element} gpu.memset %d, %k : !array, {element}"
    x, y = arrays(DTYPES[element])
    text = copying(f"{fill} gpu.memcpy %y, %d : !array, !array", element)
    ran(text, x, y, *AT_AND_SIZE, options=DeviceOptions(form=form))
    np.testing.assert_array_equal(y, np.full((2, 64), number, DTYPES[element]))


def test_a_fill_with_tokens_keeps_its_place() -> None:
    x, y = arrays(np.int8)
    ran(text_beside(__file__, "TOKENS"), x, y, 7)
    np.testing.assert_array_equal(y, np.full((2, 64), 7, np.int8))


AT_AND_SIZE = (5, 7)
LANE = np.arange(64)
INSIDE = (LANE >= 16) & (LANE < 48)
OF_PARTS: dict[str, Any] = {  # what the caller gets of x
    "a_place_that_only_the_run_knows": lambda x: np.where((LANE >= 5) & (LANE < 12), x, 0),
    "elements_apart_among_memory_of_the_device": lambda x: x * (LANE % 2 == 0),
    "a_fill_of_a_part": lambda x: np.where(INSIDE, 0, x),
}


def check_parts(name: str, expected: Any, **options: Any) -> None:
    check(copying(text_beside(__file__, name)), expected, *AT_AND_SIZE, **options)


@pytest.mark.parametrize("name", OF_PARTS)
def test_copies_and_fills_of_parts(name: str) -> None:
    check_parts(name, OF_PARTS[name])


@pytest.mark.parametrize("order", STREAM_ORDERS)
@pytest.mark.parametrize("form", FORMS)
def test_copies_of_columns_to_the_device_and_back(order: str, form: Any) -> None:
    check_parts("columns", lambda x: np.where(INSIDE, x, 0), order=order, form=form)


@pytest.mark.parametrize("form", FORMS)
def test_copies_of_contiguous_memory_after_an_offset(form: Any) -> None:
    check_parts("the_last_row", lambda x: x * [[0], [1]], form=form)
