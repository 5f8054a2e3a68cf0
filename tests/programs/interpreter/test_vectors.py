"""Vectors: their shapes, slices, ways to and from memory, and reductions, against numpy."""

from typing import Any

import numpy as np
import pytest

from tests.programs.interpreter.lane_kernels import DTYPES, NAMES, launch, memref_type
from tests.texts import text_beside
from tuner.core.errors import CandidateError, Stage

pytestmark = pytest.mark.mlir


INDICES = "\n".join(f"%c{n} = arith.constant {n} : index" for n in range(9))
LANES = 4


def vector_type(array: Any) -> str:
    """Returns the MLIR type of one lane's part of an array of lanes."""
    sizes = "".join(f"{size}x" for size in array.shape[1:])
    return f"vector<{sizes}{NAMES[array.dtype]}>" if sizes else NAMES[array.dtype]


def drawn(*shape: int, kind: str = "f32", seed: int = 0) -> Any:
    """Returns whole numbers in each lane, so that sums are exact."""
    rng = np.random.default_rng(seed)
    return rng.integers(-9, 10, (LANES, *shape)).astype(DTYPES[kind])


def applied(lines: str, expected: Any, *operands: Any) -> Any:
    """Returns ``%r`` of some lines, of the type of ``expected``, for vectors %a, %b, %c of each lane."""
    found = np.zeros_like(expected)
    arrays = [*operands, found]
    moves = []
    for number, (name, array) in enumerate(zip("abc", operands, strict=False)):
        moves.append(moved("load", f"%{name}", number, array))
    store = moved("store", "%r", len(operands), found)
    body = "\n".join([INDICES, "%t = gpu.thread_id x", *moves, lines, store])
    launch(body, *arrays, block=(LANES, 1, 1))
    return found


def moved(verb: str, value: str, number: int, array: Any) -> str:
    """Returns the line that loads or stores one lane's vector, or number."""
    places = ", ".join(["%t", *["%c0"] * (array.ndim - 1)])
    dialect, kind = ("vector", f", {vector_type(array)}") if array.ndim > 1 else ("memref", "")
    where = f"%{number}[{places}] : {memref_type(array)}{kind}"
    return f"{value} = {dialect}.load {where}" if verb == "load" else f"{dialect}.store {value}, {where}"


A, B = drawn(2, 3), drawn(2, 3, seed=1)
ROW, COLUMN = drawn(3, seed=2), drawn(2, 1, seed=3)


@pytest.mark.parametrize(
    ("name", "operands", "expected"),
    [
        ("broadcast_of_a_row", [ROW], np.repeat(ROW[:, None], 2, 1)),
        ("broadcast_of_a_column", [COLUMN], np.repeat(COLUMN, 3, 2)),
        ("broadcast_of_a_number", [ROW[:, 0].copy()], np.repeat(ROW[:, :1], 2, 1)),
        ("extract_a_row", [A], A[:, 1]),
        ("extract_a_number", [A], A[:, 1, 2]),
        ("extract_at_an_index", [A], A[np.arange(LANES), np.arange(LANES) % 2, 2]),
        ("insert_a_row", [ROW, B], np.stack([ROW, B[:, 1]], 1)),
        (
            "insert_at_an_index",
            [ROW[:, 0].copy(), drawn(3, seed=5)],
            np.where(np.arange(3) == (np.arange(LANES) % 3)[:, None], ROW[:, :1], drawn(3, seed=5)),
        ),
        ("extract_strided_slice", [A], A[:, 1:, :2]),
        (
            "insert_strided_slice",
            [ROW[:, :2].copy(), B],
            np.stack([B[:, 0], np.concatenate([B[:, 1, :1], ROW[:, :2]], 1)], 1),
        ),
        ("shape_cast", [A], A.reshape(LANES, 3, 2)),
        ("transpose", [A], A.transpose(0, 2, 1)),
        ("bitcast", [ROW], ROW.view(np.int16)),
        ("shuffle", [ROW, drawn(3, seed=6)], np.concatenate([ROW, drawn(3, seed=6)], 1)[:, [0, 5, 2, 3]]),
        ("interleave", [ROW, drawn(3, seed=6)], np.stack([ROW, drawn(3, seed=6)], -1).reshape(LANES, 6)),
        ("deinterleave", [drawn(6)], drawn(6)[:, 1::2]),
        ("elements", [ROW], ROW[:, [2, 0, 1, 2]].reshape(LANES, 2, 2)),
        (
            "create_mask",
            [A, B],
            np.where(
                (np.arange(2) < 1)[None, :, None] & (np.arange(3) < np.arange(LANES)[:, None])[:, None],
                A,
                B,
            ),
        ),
        ("constant_mask", [A, B], np.where((np.arange(2) < 1)[:, None] & (np.arange(3) < 2), A, B)),
        ("step", [ROW], np.broadcast_to(np.arange(3), (LANES, 3))),
        ("fma", [A, B], A * B + A),
        ("sum", [ROW], ROW.sum(1)),
        ("product_with_a_start", [ROW, A[:, 0, 0].copy()], ROW.prod(1) * A[:, 0, 0]),
        ("minimum", [ROW], ROW.min(1)),
        ("sums_of_columns", [A, ROW], A.sum(1) + ROW),
        ("maximum_of_all", [A, ROW[:, 0].copy()], np.maximum(A.max((1, 2)), ROW[:, 0])),
        ("outerproduct", [ROW[:, :2].copy(), ROW], ROW[:, :2, None] * ROW[:, None]),
        ("outerproduct_with_a_start", [ROW[:, :2].copy(), ROW, A], ROW[:, :2, None] * ROW[:, None] + A),
        (
            "outerproduct_with_a_number",
            [ROW, A[:, 0, 0].copy(), drawn(3, seed=8)],
            ROW * A[:, :1, 0] + drawn(3, seed=8),
        ),
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
    lines = f"""%r = vector.contract {{
        indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                         affine_map<(m, n, k) -> (m, n)>],
        iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}} %a, %b, %c
      : vector<2x4x{narrow}>, vector<3x4x{narrow}> into vector<2x3x{wide}>"""
    wanted = np.einsum("lmk,lnk->lmn", a.astype(c.dtype), b.astype(c.dtype)) + c
    np.testing.assert_array_equal(applied(lines, c, a, b, c), wanted)


def in_memory(lines: str, *arrays: Any, lanes: int = 1) -> None:
    head = f"{INDICES} %z = arith.constant 0.0 : f32 %t = gpu.thread_id x"
    launch(f"{head} {lines}", *arrays, block=(lanes, 1, 1))


def numbers(*shape: int) -> Any:
    return np.arange(1, np.prod(shape) + 1, dtype=np.float32).reshape(shape)


INSIDE = "in_bounds = [true, true]"
TRANSPOSED = "permutation_map = affine_map<(i, j) -> (j, i)>"
REPEATED = "permutation_map = affine_map<(i, j) -> (0, j)>"


@pytest.mark.parametrize(
    ("places", "attributes", "shape", "expected"),
    [
        ("%c1, %c2", INSIDE, "2x3", numbers(4, 6)[1:3, 2:5]),
        ("%c3, %c4", "", "2x3", np.array([[23, 24, 0], [0, 0, 0]])),
        ("%c1, %c2", f"{INSIDE}, {TRANSPOSED}", "3x2", numbers(4, 6)[1:3, 2:5].T),
        ("%c2, %c4", TRANSPOSED, "3x2", np.array([[17, 23], [18, 24], [0, 0]])),
        ("%c2, %c1", f"{INSIDE}, {REPEATED}", "2x3", np.repeat(numbers(4, 6)[2:3, 1:4], 2, 0)),
    ],
)
def test_a_transfer_reads_by_its_map_and_pads(
    places: str, attributes: str, shape: str, expected: Any
) -> None:
    source, found = numbers(4, 6), np.zeros(expected.shape, np.float32)
    in_memory(
        f"""%v = vector.transfer_read %0[{places}], %z {{{attributes}}} : memref<4x6xf32>, vector<{shape}xf32>
        vector.store %v, %1[%c0, %c0] : {memref_type(found)}, vector<{shape}xf32>""",
        source,
        found,
    )
    np.testing.assert_array_equal(found, expected)


def test_a_mask_of_a_transfer_has_the_order_of_the_memory() -> None:
    source, found = numbers(4, 6), np.zeros((3, 2), np.float32)
    in_memory(
        f"""%m = vector.constant_mask [1, 2] : vector<2x3xi1>
        %v = vector.transfer_read %0[%c0, %c0], %z, %m {{in_bounds = [true, true], {TRANSPOSED}}}
          : memref<4x6xf32>, vector<3x2xf32>
        vector.store %v, %1[%c0, %c0] : memref<3x2xf32>, vector<3x2xf32>""",
        source,
        found,
    )
    np.testing.assert_array_equal(found, [[1, 0], [2, 0], [0, 0]])


def test_a_transfer_writes_what_is_inside_and_wanted() -> None:
    source, found = numbers(2, 3), np.zeros((4, 6), np.float32)
    in_memory(
        text_beside(__file__, "WRITES"),
        source,
        found,
    )
    wanted = np.zeros((4, 6), np.float32)
    wanted[3, 4:] = source[0, :2]
    wanted[:2, 0] = source[:, 0]
    np.testing.assert_array_equal(found, wanted)


def test_masked_and_scattered_accesses_touch_what_is_wanted() -> None:
    source, found = numbers(8), np.zeros((4, 4), np.float32)
    in_memory(
        text_beside(__file__, "MASKED"),
        source,
        found,
    )
    wanted = [[7, 8, 9, 9], [5, 3, 9, 9], [0, 0, 7, 8], [0, 3, 0, 5]]
    np.testing.assert_array_equal(found, wanted)


def test_a_memref_of_vectors_has_rows_of_powers_of_two() -> None:
    found = np.zeros((2, 3), np.float32)
    in_memory(
        text_beside(__file__, "ROWS"),
        found,
    )
    np.testing.assert_array_equal(found, [[1, 2, 3], [2, 4, 6]])


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (
            """%v = vector.transfer_read %0[%c6], %z {in_bounds = [true]} : memref<8xf32>, vector<4xf32>
            vector.store %v, %0[%c0] : memref<8xf32>, vector<4xf32>""",
            "an index outside of dimension 0, said to be in bounds",
        ),
        (
            "%v = vector.load %0[%c6] : memref<8xf32>, vector<4xf32>",
            "an address outside of its buffer",
        ),
    ],
)
def test_what_is_outside_of_memory_is_a_fault(lines: str, found: str) -> None:
    with pytest.raises(CandidateError, match=found) as caught:
        in_memory(lines, numbers(8))
    assert caught.value.stage is Stage.RUN
