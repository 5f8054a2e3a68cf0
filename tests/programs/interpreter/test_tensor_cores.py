"""Tensor cores and asynchronous copies against numpy; fragments are laid out by the text of the PTX ISA."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.programs.interpreter.lane_kernels import DTYPES, NAMES, launch, memref_type
from tests.texts import text_beside
from tuner.core.errors import CandidateError, Stage

pytestmark = pytest.mark.mlir


Place = Callable[[int, int, int], tuple[int, int]]  # of group, number in it, and index -> row, column
Shape = tuple[int, int, int]
# (shape, type of A and B, type of C) -> where the elements of A, B and C are: PTX ISA, fragments for mma
MULTIPLICATIONS: dict[tuple[Shape, str, str], tuple[Place, Place, Place]] = {}


def add(shape: Shape, kinds: list[tuple[str, str]], a: Place, b: Place, c: Place) -> None:
    for of_factor, of_sum in kinds:
        MULTIPLICATIONS[shape, of_factor, of_sum] = (a, b, c)


def of_sums(g: int, t: int, i: int) -> tuple[int, int]:
    return (g if i < 2 else g + 8), t * 2 + (i & 1)


add(
    (16, 8, 16),
    [("f16", "f32"), ("f16", "f16"), ("bf16", "f32")],
    lambda g, t, i: (g if i in (0, 1, 4, 5) else g + 8, t * 2 + (i & 1) + (0 if i < 4 else 8)),
    lambda g, t, i: (t * 2 + (i & 1) + (0 if i < 2 else 8), g),
    of_sums,
)
add(
    (16, 8, 8),
    [("f16", "f32")],
    lambda g, t, i: (g if i < 2 else g + 8, t * 2 + (i & 1)),
    lambda g, t, i: (t * 2 + i, g),
    of_sums,
)
add(
    (16, 8, 8),
    [("f32", "f32")],
    lambda g, t, i: (g if i in (0, 2) else g + 8, t if i < 2 else t + 4),
    lambda g, t, i: (t + 4 * i, g),
    of_sums,
)
add((16, 8, 4), [("f32", "f32")], lambda g, t, i: (g + 8 * i, t), lambda g, t, i: (t, g), of_sums)
add(
    (16, 8, 32),
    [("i8", "i32")],
    lambda g, t, i: (g if i // 4 % 2 == 0 else g + 8, t * 4 + (i & 3) + (0 if i < 8 else 16)),
    lambda g, t, i: (t * 4 + (i & 3) + (0 if i < 4 else 16), g),
    of_sums,
)
add(
    (8, 8, 4),
    [("f64", "f64")],
    lambda g, t, i: (g, t),
    lambda g, t, i: (t, g),
    lambda g, t, i: (g, t * 2 + i),
)


def numbers(kind: str, *shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(DTYPES[kind])


def places(place: Place, count: int) -> tuple[Any, Any]:
    """Returns row and column of each element of each lane."""
    found = np.array([[place(lane // 4, lane % 4, index) for index in range(count)] for lane in range(32)])
    return found[..., 0], found[..., 1]


def fragments(matrix: Any, place: Place, per_register: int) -> Any:
    """Returns what each lane holds of a matrix: [lane, register, item]."""
    return matrix[places(place, matrix.size // 32)].reshape(32, -1, per_register).copy()


@pytest.mark.parametrize(("shape", "narrow", "wide"), MULTIPLICATIONS)
def test_a_multiplication_is_that_of_the_matrices_whose_fragments_lanes_hold(
    shape: Shape, narrow: str, wide: str
) -> None:
    (m, n, k), layouts = shape, MULTIPLICATIONS[shape, narrow, wide]
    a, b, c = (numbers(narrow, m, k), numbers(narrow, k, n, seed=1), numbers(wide, m, n, seed=2))
    per_register = max(4 // a.itemsize, 1)
    held = [
        fragments(matrix, place, each)
        for matrix, place, each in zip((a, b, c), layouts, (per_register, per_register, 2), strict=True)
    ]
    found = np.zeros_like(held[2])
    kinds = [f"vector<{each.shape[1]}x{each.shape[2]}x{NAMES[each.dtype]}>" for each in held]
    loads = "\n".join(
        f"%f{number} = vector.load %{number}[%t, %c0, %c0] : {memref_type(each)}, {kind}"
        for number, (each, kind) in enumerate(zip(held, kinds, strict=True))
    )
    tf32 = ", tf32Enabled" if narrow == "f32" else ""
    launch(
        f"""%t = gpu.thread_id x %c0 = arith.constant 0 : index
        {loads}
        %d = nvgpu.mma.sync (%f0, %f1, %f2) {{mmaShape = [{m}, {n}, {k}]{tf32}}}
          : ({", ".join(kinds)}) -> {kinds[2]}
        vector.store %d, %3[%t, %c0, %c0] : {memref_type(found)}, {kinds[2]}""",
        *(*held, found),
    )
    wanted = (a.astype(np.float64) @ b.astype(np.float64) + c.astype(np.float64)).astype(c.dtype)
    np.testing.assert_array_equal(found, fragments(wanted, layouts[2], 2))


def test_tf32_is_cut_to_the_bits_that_a_tensor_core_reads() -> None:
    a, b, found = (np.zeros(shape, np.float32) for shape in ((32, 4, 1), (32, 2, 1), (32, 2, 2)))
    a[0, 0, 0], b[0, 0, 0] = 1 + 2.0**-10 + 2.0**-11, 1
    launch(
        text_beside(__file__, "TF32"),
        *(a, b, found),
    )
    assert found[0, 0, 0] == 1 + 2.0**-10


@pytest.mark.parametrize("is_transposed", [False, True])
@pytest.mark.parametrize("tiles", [1, 2, 4])
def test_tiles_of_eight_rows_are_loaded_as_fragments(tiles: int, is_transposed: bool) -> None:
    source, found = numbers("f16", 32, 8), np.zeros((32, tiles, 2), np.float16)
    source[:] = np.arange(256).reshape(32, 8)
    launch(
        f"""%t = gpu.thread_id x %c0 = arith.constant 0 : index
        %s = memref.get_global @shared : memref<32x8xf16, 3>
        %row = vector.load %0[%t, %c0] : memref<32x8xf16>, vector<8xf16>
        vector.store %row, %s[%t, %c0] : memref<32x8xf16, 3>, vector<8xf16>
        gpu.barrier
        %x = nvgpu.ldmatrix %s[%t, %c0] {{numTiles = {tiles} : i32, transpose = {str(is_transposed).lower()}}}
          : memref<32x8xf16, 3> -> vector<{tiles}x2xf16>
        vector.store %x, %1[%t, %c0, %c0] : memref<32x{tiles}x2xf16>, vector<{tiles}x2xf16>""",
        source,
        found,
        surrounding='memref.global "private" @shared : memref<32x8xf16, 3>',
    )
    for lane in range(32):
        for tile in range(tiles):
            eight = source[8 * tile : 8 * tile + 8]
            eight = eight.T if is_transposed else eight
            pair = eight[lane // 4, lane % 4 * 2 : lane % 4 * 2 + 2]
            np.testing.assert_array_equal(found[lane, tile], pair)


def test_an_asynchronous_copy_fills_up_with_zeros() -> None:
    source, found = numbers("f32", 32, 4), np.zeros((32, 4), np.float32)
    launch(
        text_beside(__file__, "ASYNC_COPY"),
        source,
        found,
        surrounding='memref.global "private" @shared : memref<32x4xf32, 3>',
    )
    np.testing.assert_array_equal(found, np.where(np.arange(4) < np.arange(32)[:, None] % 4, source, 0))


MATRIX = '!gpu.mma_matrix<16x16x{}, "{}Op">'


def test_matrices_of_a_subgroup_are_loaded_multiplied_and_stored() -> None:
    a, b = numbers("f16", 2, 16, 20), numbers("f16", 2, 16, 16, seed=1)
    found = np.zeros((2, 16, 24), np.float32)
    of_a, of_b, of_c = (MATRIX.format(*each) for each in (("f16", "A"), ("f16", "B"), ("f32", "C")))
    launch(
        f"""%t = gpu.thread_id x %c0 = arith.constant 0 : index %c2 = arith.constant 2 : index
        %c32 = arith.constant 32 : index %w = arith.divui %t, %c32 : index
        %one = arith.constant 1.0 : f32 %three = arith.constant 3.0 : f32
        %c1 = arith.constant 1 : index
        %a = gpu.subgroup_mma_load_matrix %0[%w, %c0, %c2] {{leadDimension = 20 : index}}
          : memref<2x16x20xf16> -> {of_a}
        %b = gpu.subgroup_mma_load_matrix %1[%w, %c0, %c0] {{leadDimension = 16 : index, transpose}}
          : memref<2x16x16xf16> -> {of_b}
        %z = gpu.subgroup_mma_constant_matrix %one : {of_c}
        %k = gpu.subgroup_mma_constant_matrix %three : {of_c}
        %s = scf.for %i = %c0 to %c2 step %c1 iter_args(%acc = %z) -> ({of_c}) {{
          %d = gpu.subgroup_mma_compute %a, %b, %acc : {of_a}, {of_b} -> {of_c}
          scf.yield %d : {of_c}
        }}
        %e = gpu.subgroup_mma_elementwise mulf %s, %k : ({of_c}, {of_c}) -> {of_c}
        gpu.subgroup_mma_store_matrix %e, %2[%w, %c0, %c1] {{leadDimension = 24 : index}}
          : {of_c}, memref<2x16x24xf32>""",
        *(a, b, found),
        block=(64, 1, 1),
    )
    wanted = np.zeros_like(found)
    for warp in range(2):
        product = a[warp, :, 2:18].astype(np.float64) @ b[warp].T.astype(np.float64)
        wanted[warp, :, 1:17] = 3 * (2 * product + 1)
    np.testing.assert_array_equal(found, wanted)


def test_half_a_subgroup_cannot_multiply() -> None:
    found = np.zeros((16, 16), np.float32)
    kind = MATRIX.format("f32", "C")
    body = f"""%t = gpu.thread_id x %c0 = arith.constant 0 : index %c16 = arith.constant 16 : index
      %p = arith.cmpi ult, %t, %c16 : index %one = arith.constant 1.0 : f32
      scf.if %p {{
        %z = gpu.subgroup_mma_constant_matrix %one : {kind}
        gpu.subgroup_mma_store_matrix %z, %0[%c0, %c0] {{leadDimension = 16 : index}}
          : {kind}, memref<16x16xf32>
      }}"""
    with pytest.raises(CandidateError, match="some of the lanes of a subgroup only") as caught:
        launch(body, found)
    assert caught.value.stage is Stage.RUN
