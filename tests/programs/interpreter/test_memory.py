"""Memory: loads, stores, views, copies, atomic updates, allocations, against numpy."""

import re
from typing import Any

import numpy as np
import pytest

from tests.programs.interpreter.lane_kernels import DTYPES, launch
from tests.texts import text_beside
from tuner.core.errors import CandidateError, Stage

pytestmark = pytest.mark.mlir


INDICES = "\n".join(f"%c{n} = arith.constant {n} : index" for n in range(9))
WORKGROUP = "#gpu.address_space<workgroup>"


def numbers(*shape: int) -> Any:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def copied(name: str, source: Any, shape: tuple[int, ...]) -> Any:
    """Returns ``%v``, the view of %0 of this name, element by element."""
    view = text_beside(__file__, name)
    kind = re.split(r"\b(?:to|into)\b", view)[-1].strip()
    found = np.zeros(shape, np.float32)
    target = "x".join(map(str, shape)) + "xf32"
    names = "ijk"[: len(shape)]
    loops = "".join(f"scf.for %{name} = %c0 to %n{axis} step %c1 {{\n" for axis, name in enumerate(names))
    sizes = "\n".join(f"%n{axis} = arith.constant {size} : index" for axis, size in enumerate(shape))
    places = ", ".join(f"%{name}" for name in names)
    body = f"""{INDICES}\n{sizes}\n{view}\n{loops}
      %x = memref.load %v[{places}] : {kind}
      memref.store %x, %1[{places}] : memref<{target}>
      {"}" * len(shape)}"""
    launch(body, source, found, block=(1, 1, 1))
    return found


SOURCE = numbers(6, 8)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("strided_subview", SOURCE[1:6:2, 2:8:3]),
        ("subview_of_a_row", SOURCE[2, 1:6]),
        ("subview_of_a_subview", SOURCE[2:4, 2:5]),
        ("reinterpret_cast", SOURCE.ravel()[5:][np.add.outer([0, 8], [0, 2, 4, 6])]),
        ("transpose", SOURCE.T),
        ("collapse_shape", SOURCE.ravel()),
        ("expand_shape", SOURCE.reshape(6, 2, 4)),
        ("collapse_of_a_column", SOURCE[:, 0]),
        ("strided_metadata", SOURCE.ravel()[3:19].reshape(2, 8)),
        ("cast_dim_and_rank", SOURCE[2]),
    ],
)
def test_views_name_the_elements_that_numpy_names(name: str, expected: Any) -> None:
    np.testing.assert_array_equal(copied(name, SOURCE.copy(), expected.shape), expected)


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f64", "i1", "i8", "i16", "i32", "i64"])
def test_elements_of_every_type_are_loaded_and_stored(kind: str) -> None:
    source = np.array([0, 1, 1, 0, 1, 0, 0, 1]).astype(DTYPES[kind])
    found = np.zeros_like(source)
    body = f"""%t = gpu.thread_id x %x = memref.load %0[%t] : memref<8x{kind}>
      memref.store %x, %1[%t] : memref<8x{kind}>"""
    launch(body, source, found, block=(8, 1, 1))
    assert found.tobytes() == source.tobytes()


def test_of_several_lanes_that_store_at_one_place_the_last_wins() -> None:
    found = np.zeros(2, np.int64)
    launch(
        f"""{INDICES} %t = gpu.thread_id x %x = arith.index_cast %t : index to i64
        %p = arith.cmpi ult, %t, %c5 : index
        scf.if %p {{ memref.store %x, %0[%c1] : memref<2xi64> }}""",
        found,
        block=(8, 1, 1),
    )
    assert found.tolist() == [0, 4]


ATOMIC = {
    "addi": lambda old, new: old + new,
    "muli": lambda old, new: old * new,
    "maxs": max,
    "mins": min,
    "maxu": lambda old, new: max(old % 2**32, new % 2**32),
    "minu": lambda old, new: min(old % 2**32, new % 2**32),
    "ori": lambda old, new: old | new,
    "andi": lambda old, new: old & new,
    "xori": lambda old, new: old ^ new,
    "assign": lambda _, new: new,
}


def in_turn(
    function: Any, start: list[int], operands: list[int], places: list[int]
) -> tuple[list[int], list[int]]:
    """Returns what lanes find and what they leave, one after another."""
    cells, found = list(start), []
    for operand, place in zip(operands, places, strict=True):
        found.append(cells[place])
        whole = function(cells[place], operand)
        cells[place] = (whole + 2**31) % 2**32 - 2**31
    return found, cells


@pytest.mark.parametrize("name", ATOMIC)
def test_atomic_updates_of_one_place_come_one_after_another(name: str) -> None:
    operands = np.array([3, -5, 7, 2, 2, -1, 6, 9, 12, -8, 1, 4], np.int32)
    cells, found = np.array([10, -20, 30], np.int32), np.zeros(12, np.int32)
    places = [0, 1, 0, 0, 2, 1, 1, 0, 2, 2, 0, 1]
    wanted = in_turn(ATOMIC[name], cells.tolist(), operands.tolist(), places)
    at = np.array(places, np.int32)
    launch(
        f"""%t = gpu.thread_id x %x = memref.load %0[%t] : memref<12xi32>
        %q = memref.load %1[%t] : memref<12xi32> %p = arith.index_cast %q : i32 to index
        %old = memref.atomic_rmw {name} %x, %2[%p] : (i32, memref<3xi32>) -> i32
        memref.store %old, %3[%t] : memref<12xi32>""",
        *(operands, at, cells, found),
        block=(12, 1, 1),
    )
    assert (found.tolist(), cells.tolist()) == wanted


def test_atomic_updates_by_a_region_come_one_after_another() -> None:
    found, cells = np.zeros(6, np.int32), np.array([1, 2], np.int32)
    launch(
        INDICES + text_beside(__file__, "REGION"),
        found,
        cells,
        block=(6, 1, 1),
    )
    wanted = in_turn(lambda now, x: 2 * now + x, [1, 2], list(range(6)), [0, 1] * 3)
    assert (found.tolist(), cells.tolist()) == wanted


@pytest.mark.slow
def test_floats_are_added_atomically_over_all_blocks() -> None:
    total = np.zeros(1, np.float32)
    body = f"""{INDICES} %one = arith.constant 1.0 : f32
      %old = memref.atomic_rmw addf %one, %0[%c0] : (f32, memref<1xf32>) -> f32"""
    launch(body, total, grid=(300, 2, 1), block=(32, 2, 1))
    assert total[0] == 300 * 2 * 64


def test_a_copy_goes_between_views_of_different_strides() -> None:
    source, found = numbers(4, 6), np.zeros((3, 2), np.float32)
    launch(
        text_beside(__file__, "COPY"),
        source,
        found,
    )
    np.testing.assert_array_equal(found, source[::2, 1::2].T)


SHARED = {
    "allocated": "%m = memref.alloc() : memref<8xf32, 3>",
    "allocated by address space": f"%n = memref.alloc() : memref<8xf32, {WORKGROUP}>"
    f" %m = memref.memory_space_cast %n : memref<8xf32, {WORKGROUP}> to memref<8xf32, 3>",
    "of the module": "%m = memref.get_global @shared : memref<8xf32, 3>",
}


@pytest.mark.parametrize("memory", SHARED.values(), ids=SHARED)
def test_memory_of_a_block_is_shared_by_its_threads_alone(memory: str) -> None:
    found = np.zeros((3, 8), np.float32)
    launch(
        f"""{INDICES} {memory}
        %t = gpu.thread_id x %b = gpu.block_id x
        %g = gpu.global_id x %h = arith.index_cast %g : index to i32 %x = arith.sitofp %h : i32 to f32
        memref.store %x, %m[%t] : memref<8xf32, 3>
        gpu.barrier
        %seven = arith.constant 7 : index
        %o = arith.subi %seven, %t : index
        %y = memref.load %m[%o] : memref<8xf32, 3>
        memref.store %y, %0[%b, %t] : memref<3x8xf32>""",
        found,
        grid=(3, 1, 1),
        block=(8, 1, 1),
        surrounding='memref.global "private" @shared : memref<8xf32, 3>',
    )
    np.testing.assert_array_equal(found, numbers(3, 8)[:, ::-1])


PRIVATE = {
    "alloca": "%m = memref.alloca() : memref<4xf32>",
    "alloca in space 5": "%n = memref.alloca() : memref<4xf32, 5>"
    " %m = memref.memory_space_cast %n : memref<4xf32, 5> to memref<4xf32>",
    "of dynamic size": "%m = memref.alloc(%c4) : memref<4xf32>".replace("memref<4xf32>", "memref<?xf32>"),
}


@pytest.mark.parametrize("name", PRIVATE)
def test_memory_of_a_thread_is_its_own(name: str) -> None:
    found = np.zeros(8, np.float32)
    kind = "memref<?xf32>" if "dynamic" in name else "memref<4xf32>"
    launch(
        f"""{INDICES} {PRIVATE[name]}
        %t = gpu.thread_id x %p = arith.remui %t, %c4 : index
        %h = arith.index_cast %t : index to i32 %x = arith.sitofp %h : i32 to f32
        memref.store %x, %m[%p] : {kind}
        %y = memref.load %m[%p] : {kind}
        memref.store %y, %0[%t] : memref<8xf32>""",
        found,
        block=(8, 1, 1),
    )
    assert found.tolist() == list(range(8))


def test_constants_of_the_module_can_be_read() -> None:
    found = np.zeros((2, 2), np.float32)
    launch(
        f"""{INDICES} %m = memref.get_global @table : memref<2x2xf32>
        memref.copy %m, %0 : memref<2x2xf32> to memref<2x2xf32>""",
        found,
        surrounding='memref.global "private" constant @table : memref<2x2xf32> '
        "= dense<[[1.0, 2.0], [3.0, 4.0]]>",
    )
    assert found.tolist() == [[1, 2], [3, 4]]


def test_fresh_memory_has_no_contents() -> None:
    found = np.zeros(1, np.float32)
    launch(
        f"""{INDICES} %m = memref.alloca() : memref<4xf32>
        %x = memref.load %m[%c2] : memref<4xf32>
        memref.store %x, %0[%c0] : memref<1xf32>""",
        found,
    )
    assert np.isnan(found[0])


def test_buffers_can_be_chosen_and_swapped_by_lanes() -> None:
    one, other, found = numbers(4), numbers(4) + 10, np.zeros(4, np.float32)
    launch(
        INDICES + text_beside(__file__, "SWAPPED"),
        *(one, other, found),
        block=(4, 1, 1),
    )
    assert found.tolist() == [10, 1, 12, 3]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("%x = memref.load %0[%c8, %c0] : memref<6x8xf32>", "found index 8 of dimension 0, allowed 0 to 5,"),
        (
            """%m = arith.constant -1 : index
            memref.store %z, %0[%c0, %m] : memref<6x8xf32>""",
            "found index -1 of dimension 1, allowed 0 to 7,",
        ),
        (
            """%v = memref.reinterpret_cast %0 to offset: [40], sizes: [9], strides: [1]
            : memref<6x8xf32> to memref<9xf32, strided<[1], offset: 40>>
            %x = memref.load %v[%c8] : memref<9xf32, strided<[1], offset: 40>>""",
            "found an address outside of its buffer",
        ),
        (
            """%m = memref.alloca() : memref<16xi8>
            %v = memref.view %m[%c2][] : memref<16xi8> to memref<2xf32>
            memref.store %z, %v[%c0] : memref<2xf32>""",
            "found an address that is no multiple of 4",
        ),
        (
            """%big = arith.constant 100000000 : index
            %m = memref.alloca(%big) : memref<?xf32>""",
            "found 400000000 bytes in each of 32, allowed 4294967296 in all",
        ),
    ],
)
def test_what_is_outside_of_memory_is_a_fault(body: str, found: str) -> None:
    with pytest.raises(CandidateError, match=found) as caught:
        launch(f"{INDICES} %z = arith.constant 0.0 : f32 {body}", SOURCE.copy())
    assert caught.value.stage is Stage.RUN


def test_an_index_outside_of_memory_where_no_lane_runs_is_none() -> None:
    found = numbers(4)
    launch(
        INDICES + text_beside(__file__, "SOME_LANES"),
        found,
    )
    assert found.tolist() == [0, 2, 4, 6]
