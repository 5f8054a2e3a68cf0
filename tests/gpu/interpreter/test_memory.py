"""Memory and vectors of lanes: loads, stores, views, copies, atomic updates, slices, against numpy."""

import operator
import re
from typing import Any

import numpy as np
import pytest

from tests.default_suite import ALL
from tests.gpu.interpreter.lane_kernels import DTYPES, KINDS, NAMES, launch, memref_type
from tests.models.file_check import cases, filled
from tests.texts import text_beside
from tuner.core.errors import CandidateError, Stage

pytestmark = pytest.mark.mlir
INDICES = "\n".join(f"%c{n} = arith.constant {n} : index" for n in range(9))
LANES = 4
INSIDE = "in_bounds = [true, true]"
TRANSPOSED = "permutation_map = affine_map<(i, j) -> (j, i)>"
REPEATED = "permutation_map = affine_map<(i, j) -> (0, j)>"


def numbers(*shape: int) -> Any:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def copied(name: str, source: Any, shape: tuple[int, ...]) -> Any:
    view = text_beside(__file__, name)
    kind = re.split(r"\b(?:to|into)\b", view)[-1].strip()
    found, axes = np.zeros(shape, np.float32), range(len(shape))
    loops = "".join(f"scf.for %i{axis} = %c0 to %c{shape[axis]} step %c1 {{\n" for axis in axes)
    places = ", ".join(f"%i{axis}" for axis in axes)
    body = f"""{INDICES}\n%c48 = arith.constant 48 : index\n{view}\n{loops}
      %x = memref.load %v[{places}] : {kind}
      memref.store %x, %1[{places}] : {memref_type(found)}
      {"}" * len(shape)}"""
    launch(body, source, found, block=(1, 1, 1))
    return found


SOURCE = numbers(6, 8)


@pytest.mark.drawn(ALL)
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


@pytest.mark.parametrize("kind", KINDS)
def test_elements_of_every_type_are_loaded_and_stored(kind: str) -> None:
    source = np.array([0, 1, 1, 0, 1, 0, 0, 1]).astype(DTYPES[kind])
    found = np.zeros_like(source)
    body = f"""%t = gpu.thread_id x %x = memref.load %0[%t] : memref<8x{kind}>
      memref.store %x, %1[%t] : memref<8x{kind}>"""
    launch(body, source, found, block=(8, 1, 1))
    assert found.tobytes() == source.tobytes()


def test_of_lanes_that_store_at_one_place_the_last_wins_and_atomic_regions_take_turns() -> None:
    found = np.zeros(2, np.int64)
    launch(INDICES + text_beside(__file__, "LAST_WINS"), found, block=(8, 1, 1))
    assert found.tolist() == [0, 4]
    found, cells = np.zeros(6, np.int32), np.array([1, 2], np.int32)
    launch(INDICES + text_beside(__file__, "REGION"), found, cells, block=(6, 1, 1))
    wanted = in_turn(lambda now, x: 2 * now + x, [1, 2], list(range(6)), [0, 1] * 3)
    assert (found.tolist(), cells.tolist()) == wanted


ATOMIC: dict[str, Any] = {"addi": operator.add, "muli": operator.mul, "maxs": max, "mins": min}
ATOMIC |= {"ori": operator.or_, "andi": operator.and_, "xori": operator.xor, "assign": lambda _, new: new}
ATOMIC |= {"maxu": lambda *both: max(each % 2**32 for each in both)}
ATOMIC |= {"minu": lambda *both: min(each % 2**32 for each in both)}


def in_turn(function: Any, cells: list[int], operands: list[int], places: list[int]) -> Any:
    found = []
    for operand, place in zip(operands, places, strict=True):
        found.append(cells[place])
        cells[place] = (function(cells[place], operand) + 2**31) % 2**32 - 2**31
    return found, cells


@pytest.mark.parametrize("name", ATOMIC)
def test_atomic_updates_of_one_place_come_one_after_another(name: str) -> None:
    operands = np.array([3, -5, 7, 2, 2, -1, 6, 9, 12, -8, 1, 4], np.int32)
    cells, found = np.array([10, -20, 30], np.int32), np.zeros(12, np.int32)
    places = [0, 1, 0, 0, 2, 1, 1, 0, 2, 2, 0, 1]
    wanted = in_turn(ATOMIC[name], cells.tolist(), operands.tolist(), places)
    text = text_beside(__file__, "ATOMIC").replace("NAME", name)
    launch(text, operands, np.array(places, np.int32), cells, found, block=(12, 1, 1))
    assert (found.tolist(), cells.tolist()) == wanted


@pytest.mark.slow
def test_floats_are_added_atomically_over_all_blocks() -> None:
    total = np.zeros(1, np.float32)
    body = f"""{INDICES} %one = arith.constant 1.0 : f32
      %old = memref.atomic_rmw addf %one, %0[%c0] : (f32, memref<1xf32>) -> f32"""
    launch(body, total, grid=(300, 2, 1), block=(32, 2, 1))
    assert total[0] == 300 * 2 * 64


def test_a_copy_goes_between_strides_and_an_index_outside_where_no_lane_runs_is_none() -> None:
    source, found = numbers(4, 6), np.zeros((3, 2), np.float32)
    launch(text_beside(__file__, "COPY"), source, found)
    np.testing.assert_array_equal(found, source[::2, 1::2].T)
    found = numbers(4)
    launch(INDICES + text_beside(__file__, "SOME_LANES"), found)
    assert found.tolist() == [0, 2, 4, 6]


@pytest.mark.parametrize("memory", [text for _, text in cases(text_beside(__file__, "SHARED_MEMORY"))])
def test_memory_of_a_block_is_shared_by_its_threads_alone(memory: str) -> None:
    found = np.zeros((3, 8), np.float32)
    surrounding = 'memref.global "private" @shared : memref<8xf32, 3>'
    text = f"{INDICES}\n{memory}\n{text_beside(__file__, 'SHARED')}"
    launch(text, found, grid=(3, 1, 1), block=(8, 1, 1), surrounding=surrounding)
    np.testing.assert_array_equal(found, numbers(3, 8)[:, ::-1])


@pytest.mark.parametrize(("options", "memory"), cases(text_beside(__file__, "PRIVATE_MEMORY")))
def test_memory_of_a_thread_is_its_own(options: dict[str, str], memory: str) -> None:
    found = np.zeros(8, np.float32)
    text = f"{INDICES}\n{memory}\n{filled(__file__, 'PRIVATE', size=options['size'])}"
    launch(text, found, block=(8, 1, 1))
    assert found.tolist() == list(range(8))


def test_constants_fresh_memory_and_buffers_that_lanes_choose_are_read() -> None:
    rows = np.zeros((2, 2), np.float32)
    table = 'memref.global "private" constant @table : memref<2x2xf32> = dense<[[1.0, 2.0], [3.0, 4.0]]>'
    launch(INDICES + text_beside(__file__, "TABLE"), rows, surrounding=table)
    np.testing.assert_array_equal(rows, [[1, 2], [3, np.nan]])
    one, other, found = numbers(4), numbers(4) + 10, np.zeros(4, np.float32)
    launch(INDICES + text_beside(__file__, "SWAPPED"), *(one, other, found), block=(4, 1, 1))
    assert found.tolist() == [10, 1, 12, 3]


@pytest.mark.parametrize(("options", "body"), cases(text_beside(__file__, "FAULTS")))
def test_what_is_outside_of_memory_is_a_fault(options: dict[str, str], body: str) -> None:
    with pytest.raises(CandidateError, match=options["fault"]) as caught:
        in_memory(f"\n{body}\n", SOURCE.copy(), lanes=32)
    assert caught.value.stage is Stage.RUN


def vector_type(array: Any) -> str:
    sizes = "".join(f"{size}x" for size in array.shape[1:])
    return f"vector<{sizes}{NAMES[array.dtype]}>" if sizes else NAMES[array.dtype]


def drawn(*shape: int, kind: str = "f32", seed: int = 0) -> Any:
    """Returns whole numbers in each lane, so that sums are exact."""
    rng = np.random.default_rng(seed)
    return rng.integers(-9, 10, (LANES, *shape)).astype(DTYPES[kind])


def applied(lines: str, expected: Any, *operands: Any) -> Any:
    """Returns ``%r`` of some lines, of the type of ``expected``, for vectors %a, %b, %c of each lane."""
    found = np.zeros_like(expected)
    loads = [moved("load", f"%{'abc'[number]}", number, array) for number, array in enumerate(operands)]
    store = moved("store", "%r", len(operands), found)
    body = "\n".join([INDICES, "%t = gpu.thread_id x", *loads, lines, store])
    launch(body, *operands, found, block=(LANES, 1, 1))
    return found


def moved(verb: str, value: str, number: int, array: Any) -> str:
    places = ", ".join(["%t", *["%c0"] * (array.ndim - 1)])
    dialect, kind = ("vector", f", {vector_type(array)}") if array.ndim > 1 else ("memref", "")
    where = f"%{number}[{places}] : {memref_type(array)}{kind}"
    return f"{value} = {dialect}.load {where}" if verb == "load" else f"{dialect}.store {value}, {where}"


A, B = drawn(2, 3), drawn(2, 3, seed=1)
ROW, OTHER, COLUMN = drawn(3, seed=2), drawn(3, seed=5), drawn(2, 1, seed=3)
PAIR, FIRST, CORNER = ROW[:, :2].copy(), ROW[:, 0].copy(), A[:, 0, 0].copy()
LANE, THREE, UPPER = np.arange(LANES), np.arange(3), np.array([[True], [False]])


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize(
    ("name", "operands", "expected"),
    [
        ("broadcast_of_a_row", [ROW], np.repeat(ROW[:, None], 2, 1)),
        ("broadcast_of_a_column", [COLUMN], np.repeat(COLUMN, 3, 2)),
        ("broadcast_of_a_number", [FIRST], np.repeat(ROW[:, :1], 2, 1)),
        ("extract_a_row", [A], A[:, 1]),
        ("extract_a_number", [A], A[:, 1, 2]),
        ("extract_at_an_index", [A], A[LANE, LANE % 2, 2]),
        ("insert_a_row", [ROW, B], np.stack([ROW, B[:, 1]], 1)),
        ("insert_at_an_index", [FIRST, OTHER], np.where((LANE % 3)[:, None] == THREE, ROW[:, :1], OTHER)),
        ("extract_strided_slice", [A], A[:, 1:, :2]),
        ("insert_strided_slice", [PAIR, B], np.stack([B[:, 0], np.hstack([B[:, 1, :1], PAIR])], 1)),
        ("shape_cast", [A], A.reshape(LANES, 3, 2)),
        ("transpose_of_rows", [A], A.transpose(0, 2, 1)),
        ("bitcast", [ROW], ROW.view(np.int16)),
        ("shuffle", [ROW, OTHER], np.hstack([ROW, OTHER])[:, [0, 5, 2, 3]]),
        ("interleave", [ROW, OTHER], np.stack([ROW, OTHER], -1).reshape(LANES, 6)),
        ("deinterleave", [drawn(6)], drawn(6)[:, 1::2]),
        ("elements", [ROW], ROW[:, [2, 0, 1, 2]].reshape(LANES, 2, 2)),
        ("create_mask", [A, B], np.where(UPPER & (LANE[:, None] > THREE)[:, None], A, B)),
        ("constant_mask", [A, B], np.where(UPPER & (THREE < 2), A, B)),
        ("step", [ROW], np.broadcast_to(THREE, (LANES, 3))),
        ("fma", [A, B], A * B + A),
        ("sum", [ROW], ROW.sum(1)),
        ("product_with_a_start", [ROW, CORNER], ROW.prod(1) * CORNER),
        ("minimum", [ROW], ROW.min(1)),
        ("sums_of_columns", [A, ROW], A.sum(1) + ROW),
        ("maximum_of_all", [A, FIRST], np.maximum(A.max((1, 2)), FIRST)),
        ("outerproduct", [PAIR, ROW], PAIR[:, :, None] * ROW[:, None]),
        ("outerproduct_with_a_start", [PAIR, ROW, A], PAIR[:, :, None] * ROW[:, None] + A),
        ("outerproduct_with_a_number", [ROW, CORNER, OTHER], ROW * CORNER[:, None] + OTHER),
    ],
)
def test_operations_on_vectors_give_what_numpy_gives(name: str, operands: list[Any], expected: Any) -> None:
    expected = np.ascontiguousarray(expected)
    found = applied(text_beside(__file__, name), expected, *operands)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("narrow", "wide"), [("f32", "f32"), ("f16", "f32"), ("i8", "i32")])
def test_a_contraction_is_a_matmul_by_its_maps(narrow: str, wide: str) -> None:
    a, b = drawn(2, 4, kind=narrow), drawn(3, 4, kind=narrow, seed=1)
    c = drawn(2, 3, kind=wide, seed=2)
    lines = filled(__file__, "CONTRACT", narrow=narrow, wide=wide)
    wanted = np.einsum("lmk,lnk->lmn", a.astype(c.dtype), b.astype(c.dtype)) + c
    np.testing.assert_array_equal(applied(lines, c, a, b, c), wanted)


def in_memory(lines: str, *arrays: Any, lanes: int = 1) -> None:
    launch(f"{INDICES} %z = arith.constant 0.0 : f32 {lines}", *arrays, block=(lanes, 1, 1))


def counted(*shape: int) -> Any:
    return np.arange(1, np.prod(shape) + 1, dtype=np.float32).reshape(shape)


@pytest.mark.parametrize(
    ("places", "attributes", "shape", "expected"),
    [
        ("%c1, %c2", INSIDE, "2x3", counted(4, 6)[1:3, 2:5]),
        ("%c3, %c4", "", "2x3", np.array([[23, 24, 0], [0, 0, 0]])),
        ("%c1, %c2", f"{INSIDE}, {TRANSPOSED}", "3x2", counted(4, 6)[1:3, 2:5].T),
        ("%c2, %c4", TRANSPOSED, "3x2", np.array([[17, 23], [18, 24], [0, 0]])),
        ("%c2, %c1", f"{INSIDE}, {REPEATED}", "2x3", np.repeat(counted(4, 6)[2:3, 1:4], 2, 0)),
    ],
)
def test_a_transfer_reads_by_its_map_and_pads(
    places: str, attributes: str, shape: str, expected: Any
) -> None:
    source, found = counted(4, 6), np.zeros(expected.shape, np.float32)
    kinds = f"{memref_type(source)}, vector<{shape}xf32>", f"{memref_type(found)}, vector<{shape}xf32>"
    read = f"%v = vector.transfer_read %0[{places}], %z {{{attributes}}} : {kinds[0]}"
    in_memory(f"{read} vector.store %v, %1[%c0, %c0] : {kinds[1]}", source, found)
    np.testing.assert_array_equal(found, expected)


def test_transfers_masked_and_scattered_accesses_touch_what_is_wanted() -> None:
    source, found = counted(4, 6), np.zeros((3, 2), np.float32)
    in_memory(text_beside(__file__, "TRANSFER_MASK"), source, found)
    np.testing.assert_array_equal(found, [[1, 0], [2, 0], [0, 0]])
    source, found = counted(2, 3), np.zeros((4, 6), np.float32)
    in_memory(text_beside(__file__, "WRITES"), source, found)
    wanted = np.zeros((4, 6), np.float32)
    wanted[3, 4:] = source[0, :2]
    wanted[:2, 0] = source[:, 0]
    np.testing.assert_array_equal(found, wanted)
    source, found = counted(8), np.zeros((4, 4), np.float32)
    in_memory(text_beside(__file__, "MASKED"), source, found)
    np.testing.assert_array_equal(found, [[7, 8, 9, 9], [5, 3, 9, 9], [0, 0, 7, 8], [0, 3, 0, 5]])
    found = np.zeros((2, 3), np.float32)
    in_memory(text_beside(__file__, "ROWS"), found)
    np.testing.assert_array_equal(found, [[1, 2, 3], [2, 4, 6]])
