"""What lanes do together, and tensor cores, whose fragments are laid out by the text of the PTX ISA."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.gpu.interpreter.lane_kernels import DTYPES, NAMES, launch, memref_type
from tests.models.file_check import filled
from tests.texts import text_beside
from tuner.core.errors import CandidateError, Stage

pytestmark = pytest.mark.mlir
BLOCKS = 3
INTEGERS: dict[str, Callable[[Any], Any]] = {
    "add": lambda x: x.sum(dtype=x.dtype),
    "mul": lambda x: x.prod(dtype=x.dtype),
    "and": np.bitwise_and.reduce,
    "or": np.bitwise_or.reduce,
    "xor": np.bitwise_xor.reduce,
    "maxsi": np.max,
    "minsi": np.min,
    "maxui": lambda x: x.view(f"u{x.itemsize}").max().view(x.dtype),
    "minui": lambda x: x.view(f"u{x.itemsize}").min().view(x.dtype),
}
FLOATS: dict[str, Callable[[Any], Any]] = {
    "add": lambda x: x.astype(np.float64).sum(),
    "mul": lambda x: x.astype(np.float64).prod(),
    **dict.fromkeys(("maximumf", "maxnumf"), np.max),
    **dict.fromkeys(("minimumf", "minnumf"), np.min),
}
CASES = [
    *((name, kind) for name in INTEGERS for kind in ("i8", "i16", "i32", "i64")),
    *((name, kind) for name in FLOATS for kind in ("f16", "bf16", "f32", "f64")),
]
RTOL = {"f16": 0.05, "bf16": 0.3, "f32": 1e-5, "f64": 1e-12}  # of sums and products that round in each step
ONE_OF_ALL = "%o = arith.constant 1 : i32 %w = arith.constant 32 : i32"
Place = Callable[[int, int, int], tuple[int, int]]  # of group, number in it, and index -> row, column
Shape = tuple[int, int, int]


def drawn(kind: str, threads: int) -> Any:
    rng, shape = np.random.default_rng(threads), (BLOCKS, threads)
    numbers = rng.integers(-100, 100, shape) if kind[0] == "i" else rng.uniform(0.9, 1.1, shape)
    return numbers.astype(DTYPES[kind])


def over_lanes(lines: str, values: Any) -> Any:
    found = np.zeros_like(values)
    text = text_beside(__file__, "OVER_LANES").replace("LINES", lines).replace("KIND", memref_type(values))
    launch(text, values, found, grid=(BLOCKS, 1, 1), block=(values.shape[1], 1, 1))
    return found


def require_near(found: Any, expected: Any, kind: str) -> None:
    if kind[0] == "i":
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_allclose(found.astype(float), expected.astype(float), rtol=RTOL[kind])


def per_group(name: str, values: Any, groups: list[list[int]]) -> Any:
    functions, kind = (INTEGERS, values.dtype) if values.dtype.kind == "i" else (FLOATS, np.float64)
    wanted = np.zeros(values.shape, kind)
    for block, group in product(range(len(values)), groups):
        wanted[block, group] = functions[name](values[block, group])
    return wanted


@pytest.mark.parametrize("threads", [1, 50])
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_a_reduction_over_a_block_takes_every_thread(name: str, kind: str, threads: int) -> None:
    values = drawn(kind, threads)
    found = over_lanes(f"%r = gpu.all_reduce {name} %x {{}} : ({kind}) -> ({kind})", values)
    require_near(found, per_group(name, values, [list(range(threads))]), kind)


def test_a_reduction_by_a_region_does_what_the_region_says() -> None:
    values = drawn("f64", 37)
    found = over_lanes(text_beside(__file__, "REGION"), values)
    np.testing.assert_array_equal(found, np.broadcast_to(values.max(1, keepdims=True), values.shape))


def clusters(threads: int, size: int, stride: int) -> list[list[int]]:
    groups: dict[tuple[int, int, int], list[int]] = {}
    for thread in range(threads):
        lane = thread % 32
        groups.setdefault((thread // 32, lane // (size * stride), lane % stride), []).append(thread)
    return list(groups.values())


@pytest.mark.parametrize(("size", "stride"), [(32, 1), (4, 1), (8, 2), (2, 16), (1, 1)])
@pytest.mark.parametrize("reduction", ["add f32", "maxsi i16", "xor i32", "mul bf16"])
@pytest.mark.parametrize("threads", [64, 70])
def test_a_subgroup_reduces_its_clusters(reduction: str, size: int, stride: int, threads: int) -> None:
    name, kind = reduction.split()
    values = drawn(kind, threads)
    cluster = "" if size == 32 else f"cluster(size = {size}, stride = {stride})"
    found = over_lanes(f"%r = gpu.subgroup_reduce {name} %x {cluster} : ({kind}) -> {kind}", values)
    require_near(found, per_group(name, values, clusters(threads, size, stride)), kind)


def test_a_subgroup_reduces_vectors_by_element_and_only_lanes_that_take_part() -> None:
    values = drawn("f32", 32)
    wanted = np.broadcast_to(-values.sum(1, keepdims=True), values.shape)
    np.testing.assert_allclose(over_lanes(text_beside(__file__, "VECTORS"), values), wanted, rtol=1e-5)
    values = drawn("f64", 32)
    wanted = values.copy()
    wanted[:, :10] = values[:, :10].sum(1, keepdims=True)
    np.testing.assert_allclose(over_lanes(text_beside(__file__, "SOME_LANES"), values), wanted)


@pytest.mark.parametrize("kind", ["f16", "i64"])
@pytest.mark.parametrize(("offset", "width"), [(1, 32), (4, 32), (5, 16), (0, 8), (31, 32)])
@pytest.mark.parametrize("mode", ["xor", "up", "down", "idx"])
def test_a_shuffle_reads_the_lane_that_its_mode_names(mode: str, offset: int, width: int, kind: str) -> None:
    values = np.arange(BLOCKS * 64).reshape(BLOCKS, 64).astype(DTYPES[kind])
    parts = {"offset": offset, "width": width, "mode": mode, "type": kind}
    found = over_lanes(filled(__file__, "SHUFFLE", zero="0.0" if kind[0] == "f" else "0", **parts), values)
    for thread in range(64):
        lane = thread % 32
        source = {"xor": lane ^ offset, "up": lane - offset, "down": lane + offset, "idx": offset}[mode]
        is_valid = 0 <= source < width and lane < width
        wanted = values[:, thread - lane + source] if is_valid else np.zeros(BLOCKS)
        np.testing.assert_array_equal(found[:, thread], wanted)


def test_a_missing_value_of_a_shuffle_is_poison_and_ballots_and_rotations_stay_in_subgroups() -> None:
    values = drawn("f32", 32)
    found = over_lanes(f"{ONE_OF_ALL}\n%r, %ok = gpu.shuffle down %x, %o, %w : f32", values)
    np.testing.assert_array_equal(found[:, :31], values[:, 1:])
    assert np.isnan(found[:, 31]).all()
    values = np.arange(BLOCKS * 64, dtype=np.int32).reshape(BLOCKS, 64)
    narrow = values[:, :32].copy()
    other = "%z = arith.constant -1 : i32 %r = arith.select %ok, %y, %z : i32"
    found = over_lanes(f"%y, %ok = gpu.rotate %x, 3, 8 : i32 {other}", narrow)
    np.testing.assert_array_equal(found[:, :8], np.roll(narrow[:, :8], -3, 1))
    assert (found[:, 8:] == -1).all()
    first = over_lanes("%r = gpu.subgroup_broadcast %x, first_active_lane : i32", values)
    np.testing.assert_array_equal(first, np.repeat(values[:, ::32], 32, 1))
    lines = "%l = arith.constant 5 : i32 %r = gpu.subgroup_broadcast %x, specific_lane %l : i32"
    np.testing.assert_array_equal(over_lanes(lines, values), np.repeat(values[:, 5::32], 32, 1))
    values = drawn("i32", 40)
    lines = "%z = arith.constant 0 : i32 %p = arith.cmpi sgt, %x, %z : i32 %r = gpu.ballot %p : i32"
    votes = values > 0
    for first, last in ((0, 32), (32, 40)):
        bits = (votes[:, first:last] * 2 ** np.arange(last - first)).sum(1)
        wanted = ((bits + 2**31) % 2**32 - 2**31)[:, None]
        np.testing.assert_array_equal(over_lanes(lines, values)[:, first:last] - wanted, 0)


SOME = """%c3 = arith.constant 3 : index %p = arith.cmpi ult, %t, %c3 : index
  %r = scf.if %p -> f32 {{ {} scf.yield %x : f32 }} else {{ scf.yield %x : f32 }}"""


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ("gpu.barrier", "some of the threads of a block only, not block (0, 0, 0), thread (3, 0, 0)"),
        ("%y = gpu.all_reduce add %x {} : (f32) -> (f32)", "some of the threads of a block only"),
        ("%y = gpu.subgroup_reduce add %x uniform : (f32) -> f32", "some of the lanes of a subgroup only"),
        (f"{ONE_OF_ALL} %y, %ok = gpu.shuffle xor %x, %o, %w : f32", "some of the lanes of a subgroup only"),
    ],
)
def test_what_all_must_do_is_a_fault_where_some_do(lines: str, found: str) -> None:
    with pytest.raises(CandidateError) as caught:
        over_lanes(SOME.format(lines), drawn("f32", 32))
    assert found in caught.value.reason
    assert caught.value.stage is Stage.RUN


def test_where_a_lane_is() -> None:
    of_axes = ("thread_id", "block_id", "global_id", "block_dim", "grid_dim")
    names = [f"{what} {axis}" for what in of_axes for axis in "xyz"]
    names += ["lane_id", "subgroup_id : index", "num_subgroups : index", "subgroup_size : index"]
    grid, block = (2, 3, 2), (5, 4, 3)
    found = np.zeros((len(names), 12, 60), np.int64)
    stored = [
        f"%v{number} = gpu.{name} %n{number} = arith.constant {number} : index"
        f" %i{number} = arith.index_cast %v{number} : index to i64"
        f" memref.store %i{number}, %0[%n{number}, %q, %p] : {memref_type(found)}"
        for number, name in enumerate(names)
    ]
    launch("\n".join([text_beside(__file__, "PLACE"), *stored]), found, grid=grid, block=block)
    wanted: dict[str, Any] = {"lane_id": np.arange(60) % 32, "subgroup_id : index": np.arange(60) // 32}
    wanted |= {"num_subgroups : index": 2, "subgroup_size : index": 32}
    for axis, name in enumerate("xyz"):
        thread = np.indices(block[::-1])[2 - axis].ravel()[None, :]
        number = np.indices(grid[::-1])[2 - axis].ravel()[:, None]
        here = (thread, number, number * block[axis] + thread, block[axis], grid[axis])
        wanted |= {f"{what} {name}": each for what, each in zip(of_axes, here, strict=True)}
    for name, values in zip(names, found, strict=True):
        assert (values == wanted[name]).all(), name


def test_what_is_printed_comes_lane_by_lane_and_a_format_that_does_not_fit_is_refused() -> None:
    printed = launch(text_beside(__file__, "PRINTS"), grid=(2, 1, 1), block=(3, 1, 1))
    assert printed == "0:  1 1.00%\n0:  2 2.00%\n1:  1 1.00%\n1:  2 2.00%\n"
    message = r"gpu\.printf at .*: found format '%s' with 1 arguments, allowed one of %d, %i"
    with pytest.raises(CandidateError, match=message):
        launch('%i = arith.constant 1 : i32 gpu.printf "%s", %i : i32')


def of_sums(g: int, t: int, i: int) -> tuple[int, int]:
    return (g if i < 2 else g + 8), t * 2 + (i & 1)


# PTX ISA, fragments for mma: where the elements of A and B are, and of C if not as ``of_sums``
OF_HALVES: tuple[Place, ...] = (
    lambda g, t, i: (g if i in (0, 1, 4, 5) else g + 8, t * 2 + (i & 1) + (0 if i < 4 else 8)),
    lambda g, t, i: (t * 2 + (i & 1) + (0 if i < 2 else 8), g),
)
OF_BYTES: tuple[Place, ...] = (
    lambda g, t, i: (g if i // 4 % 2 == 0 else g + 8, t * 4 + (i & 3) + (0 if i < 8 else 16)),
    lambda g, t, i: (t * 4 + (i & 3) + (0 if i < 4 else 16), g),
)
OF_FEW_HALVES: tuple[Place, ...] = (
    lambda g, t, i: (g if i < 2 else g + 8, t * 2 + (i & 1)),
    lambda g, t, i: (t * 2 + i, g),
)
OF_TF32: tuple[Place, ...] = (
    lambda g, t, i: (g if i in (0, 2) else g + 8, t if i < 2 else t + 4),
    lambda g, t, i: (t + 4 * i, g),
)
OF_FEW_TF32: tuple[Place, ...] = (lambda g, t, i: (g + 8 * i, t), lambda g, t, i: (t, g))
OF_F64: tuple[Place, ...] = (lambda g, t, i: (g, t), lambda g, t, i: (t, g), lambda g, t, i: (g, t * 2 + i))
MULTIPLICATIONS: dict[tuple[Shape, str, str], tuple[Place, ...]] = {  # (shape, type of A and B, type of C)
    ((16, 8, 16), "f16", "f32"): OF_HALVES,
    ((16, 8, 16), "f16", "f16"): OF_HALVES,
    ((16, 8, 16), "bf16", "f32"): OF_HALVES,
    ((16, 8, 8), "f16", "f32"): OF_FEW_HALVES,
    ((16, 8, 8), "f32", "f32"): OF_TF32,
    ((16, 8, 4), "f32", "f32"): OF_FEW_TF32,
    ((16, 8, 32), "i8", "i32"): OF_BYTES,
    ((8, 8, 4), "f64", "f64"): OF_F64,
}


def numbers(kind: str, *shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(DTYPES[kind])


def places(place: Place, count: int) -> tuple[Any, Any]:
    found = np.array([[place(lane // 4, lane % 4, index) for index in range(count)] for lane in range(32)])
    return found[..., 0], found[..., 1]


def fragments(matrix: Any, place: Place, per_register: int) -> Any:
    return matrix[places(place, matrix.size // 32)].reshape(32, -1, per_register).copy()


@pytest.mark.parametrize(("shape", "narrow", "wide"), MULTIPLICATIONS)
def test_a_multiplication_is_that_of_the_matrices_of_the_fragments(
    shape: Shape, narrow: str, wide: str
) -> None:
    (m, n, k), layouts = shape, (*MULTIPLICATIONS[shape, narrow, wide], of_sums)[:3]
    a, b, c = (numbers(narrow, m, k), numbers(narrow, k, n, seed=1), numbers(wide, m, n, seed=2))
    sizes = [max(4 // a.itemsize, 1)] * 2 + [2]  # of a register
    held = [fragments(*each) for each in zip((a, b, c), layouts, sizes, strict=True)]
    found = np.zeros_like(held[2])
    kinds = [f"vector<{each.shape[1]}x{each.shape[2]}x{NAMES[each.dtype]}>" for each in held]
    types = [f"{memref_type(each)}, {kind}" for each, kind in zip(held, kinds, strict=True)]
    loads = "\n".join(f"%f{at} = vector.load %{at}[%t, %c0, %c0] : {each}" for at, each in enumerate(types))
    tf32 = ", tf32Enabled" if narrow == "f32" else ""
    product = f"nvgpu.mma.sync (%f0, %f1, %f2) {{mmaShape = [{m}, {n}, {k}]{tf32}}}"
    parts = {"loads": loads, "product": product, "kinds": ", ".join(kinds), "kind": kinds[2]}
    launch(filled(__file__, "MMA_SYNC", memref=memref_type(found), **parts), *held, found)
    wanted = (a.astype(np.float64) @ b.astype(np.float64) + c.astype(np.float64)).astype(c.dtype)
    np.testing.assert_array_equal(found, fragments(wanted, layouts[2], 2))


def test_tf32_is_cut_and_matrices_of_a_whole_subgroup_are_multiplied_of_half_a_one_not() -> None:
    a, b, found = (np.zeros(shape, np.float32) for shape in ((32, 4, 1), (32, 2, 1), (32, 2, 2)))
    a[0, 0, 0], b[0, 0, 0] = 1 + 2.0**-10 + 2.0**-11, 1
    launch(text_beside(__file__, "TF32"), *(a, b, found))
    assert found[0, 0, 0] == 1 + 2.0**-10
    a, b = numbers("f16", 2, 16, 20), numbers("f16", 2, 16, 16, seed=1)
    found = np.zeros((2, 16, 24), np.float32)
    launch(text_beside(__file__, "SUBGROUP"), a, b, found, block=(64, 1, 1))
    wanted = np.zeros_like(found)
    for warp in range(2):
        product = a[warp, :, 2:18].astype(np.float64) @ b[warp].T.astype(np.float64)
        wanted[warp, :, 1:17] = 3 * (2 * product + 1)
    np.testing.assert_array_equal(found, wanted)
    with pytest.raises(CandidateError, match="some of the lanes of a subgroup only") as caught:
        launch(text_beside(__file__, "HALF"), np.zeros((16, 16), np.float32))
    assert caught.value.stage is Stage.RUN


@pytest.mark.parametrize("is_transposed", [False, True])
@pytest.mark.parametrize("tiles", [1, 2, 4])
def test_tiles_of_eight_rows_are_loaded_as_fragments(tiles: int, is_transposed: bool) -> None:
    source, found = numbers("f16", 32, 8), np.zeros((32, tiles, 2), np.float16)
    source[:] = np.arange(256).reshape(32, 8)
    text = text_beside(__file__, "LDMATRIX").replace("TRANSPOSED", str(is_transposed).lower())
    shared = 'memref.global "private" @shared : memref<32x8xf16, 3>'
    launch(text.replace("TILES", str(tiles)), source, found, surrounding=shared)
    for lane in range(32):
        for tile in range(tiles):
            eight = source[8 * tile : 8 * tile + 8]
            eight = eight.T if is_transposed else eight
            pair = eight[lane // 4, lane % 4 * 2 : lane % 4 * 2 + 2]
            np.testing.assert_array_equal(found[lane, tile], pair)


def test_an_asynchronous_copy_fills_up_with_zeros() -> None:
    source, found = numbers("f32", 32, 4), np.zeros((32, 4), np.float32)
    shared = 'memref.global "private" @shared : memref<32x4xf32, 3>'
    launch(text_beside(__file__, "ASYNC_COPY"), source, found, surrounding=shared)
    np.testing.assert_array_equal(found, np.where(np.arange(4) < np.arange(32)[:, None] % 4, source, 0))
