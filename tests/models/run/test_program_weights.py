"""Weights are packed as fusions read them, and programs of a process share the arrays of equal contents."""

import gc
import threading
import weakref
from operator import is_
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tuner
from tests.models.fusions.hand_written import compiled_function, fusion
from tests.models.fusions.payload_text import PayloadText
from tuner.core.fusions import ARGUMENT, WEIGHT, Buffer, FusedProgram, TensorType, View
from tuner.core.numpy_types import DTYPES
from tuner.core.packings import FusionCode, WeightPacking
from tuner.core.progress import CompileEvent, WeightsPacked
from tuner.models.run import program_weights
from tuner.models.run.exported import WEIGHTS
from tuner.models.run.fused_program import FusedFunction
from tuner.models.run.loading import load
from tuner.models.run.program_weights import (
    ALIGNMENT_BYTES,
    LARGE_PAGE_BYTES,
    SLAB_BYTES,
    Array,
    SharedWeights,
    Slabs,
    WeightPart,
    WeightPlan,
    checksum,
    known_parts,
    packed_weights,
    weight_plan,
)
from tuner.models.weight_code import content_of

RNG = np.random.default_rng(7)
PANELS = WeightPacking(4)
PAIRS = WeightPacking(4, interleave=2)
THREADS = 8


def matrix(buffer: int, rows: int, columns: int, element: str = "f32", offset: int = 0) -> View:
    return View(buffer, offset, TensorType((rows, columns), element), (columns, 1))


def plan_of(buffers: tuple[Buffer, ...], *reads: tuple[View, WeightPacking | None]) -> WeightPlan:
    fusions = tuple(fusion((view,), view) for view, _ in reads)
    codes = tuple(FusionCode("", (packing,)) for _, packing in reads)
    return weight_plan(FusedProgram(fusions, buffers, (), ()), codes)


@pytest.mark.parametrize(
    ("weight", "element", "packing", "expected"),
    [
        # panels of columns are padded with zeros
        (np.arange(12).reshape(2, 6), "f32", PANELS, [0, 1, 2, 3, 6, 7, 8, 9, 4, 5, 0, 0, 10, 11, 0, 0]),
        # pairs of rows lie next to each other
        (np.arange(12).reshape(3, 4), "bf16", PAIRS, [0, 4, 1, 5, 2, 6, 3, 7, 8, 0, 9, 0, 10, 0, 11, 0]),
    ],
)
def test_a_weight_is_packed(weight: Any, element: str, packing: WeightPacking, expected: list[int]) -> None:
    dtype, view = DTYPES[element], matrix(0, weight.shape[0], weight.shape[1], element)
    plan = plan_of((Buffer(WEIGHT, 0, view.type),), (view, packing))
    (found,) = packed_weights(plan, known_parts({0: weight.astype(dtype)}))
    assert found.view(dtype).astype(int).tolist() == expected


def test_a_transposed_part_and_filters_are_packed_as_the_fusion_sees_them() -> None:
    weight = np.arange(24, dtype=np.float32).reshape(4, 6)
    view = View(0, 6, TensorType((6, 2), "f32"), (1, 6))  # columns 1 and 2 are rows 1 and 2 of the buffer
    plan = plan_of((Buffer(WEIGHT, 0, TensorType((4, 6), "f32")),), (view, WeightPacking(2)))
    (found,) = packed_weights(plan, known_parts({0: weight}))
    assert found.view(np.float32).tolist() == weight[1:3].T.reshape(-1).tolist()
    filters = np.arange(36, dtype=np.float32).reshape(6, 2, 3)  # filters x channels x window
    view = View(0, 0, TensorType((6, 2, 3), "f32"), (6, 3, 1))
    plan = plan_of((Buffer(WEIGHT, 0, view.type),), (view, WeightPacking(3, order=(2, 1, 0))))
    (panels,) = packed_weights(plan, known_parts({0: filters}))  # panels x window x channels x 3 filters
    np.testing.assert_array_equal(
        panels.view(np.float32), filters.reshape(2, 3, 2, 3).transpose(0, 3, 2, 1).reshape(-1)
    )


def test_a_transposed_weight_is_packed_as_its_copy_is_and_on_several_threads() -> None:
    weights = [RNG.random((9, 6), np.float32) for _ in range(12)]
    views = [matrix(number, 6, 9) for number in range(12)]
    part = View(0, 9, TensorType((4, 9), "f32"), (9, 1))  # of the first one
    buffers = tuple(Buffer(WEIGHT, number, TensorType((6, 9), "f32")) for number in range(12))
    plan = plan_of(buffers, *((view, PANELS) for view in views), (part, PANELS), (views[0], None))
    transposed = known_parts({number: weight.T for number, weight in enumerate(weights)})
    copied = known_parts({number: weight.T.copy() for number, weight in enumerate(weights)})
    seen: list[WeightsPacked] = []

    def observe(event: CompileEvent) -> None:
        assert isinstance(event, WeightsPacked)
        seen.append(event)

    found = packed_weights(plan, transposed, observe, threads=3)
    for array, expected in zip(found, packed_weights(plan, copied), strict=True):
        np.testing.assert_array_equal(array, expected)
    assert [event.total_bytes for event in seen] == [sum(plan.weight_bytes)] * 14
    assert max(event.done_bytes for event in seen) == sum(plan.weight_bytes)


def test_what_is_read_alike_is_stored_once_and_what_is_not_packed_in_its_buffer() -> None:
    view = matrix(0, 2, 6)
    packings = (PANELS, None, WeightPacking(2))
    plan = plan_of((Buffer(WEIGHT, 0, view.type),), (view, PANELS), *((view, each) for each in packings))
    assert [planned.packing for planned in plan.weights] == [*packings]
    assert [planned.bytes for planned in plan.weights] == [64, 48, 48]
    assert [plan.place(view, packing) for packing in packings] == [(0, 0), (1, 0), (2, 0)]
    whole, part = matrix(1, 4, 6), matrix(1, 2, 6, offset=12)
    buffers = (Buffer(ARGUMENT, 0, whole.type), Buffer(WEIGHT, 0, whole.type))
    plan = plan_of(buffers, (whole, None), (part, None))
    assert (len(plan.weights), plan.place(part, None)) == (1, (0, 48))
    (found,) = packed_weights(
        plan, known_parts({1: np.zeros(1), 0: np.arange(24, dtype=np.float32).reshape(4, 6)})
    )
    assert found.view(np.float32).tolist() == [*range(24)]


def test_only_a_matrix_is_packed() -> None:
    view = View(0, 0, TensorType((2, 3, 4), "f32"), (12, 4, 1))
    with pytest.raises(ValueError, match=r"shape \(2, 3, 4\) cannot be packed: it is not a matrix"):
        plan_of((Buffer(WEIGHT, 0, view.type),), (view, PANELS))


def contents(seed: int, size: int = 200) -> np.ndarray:
    """Returns bytes that do not begin at a multiple of 64 bytes."""
    return np.random.default_rng(seed).integers(0, 256, size + 1, np.uint8)[1:]


def test_equal_contents_are_one_array_that_nobody_changes() -> None:
    weights = SharedWeights()
    first = weights.array_like(contents(0))
    assert weights.array_like(contents(0)) is first
    assert first.ctypes.data % ALIGNMENT_BYTES == 0
    assert first.tobytes() == contents(0).tobytes()
    for other in (contents(1), contents(0)[:-1]):
        assert weights.array_like(other).tobytes() == other.tobytes()
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 1


def test_a_large_weight_begins_at_a_large_page_and_is_freed_with_its_last_view() -> None:
    size = LARGE_PAGE_BYTES + 100
    held = SharedWeights().array_like(contents(3, size))
    assert held.ctypes.data % LARGE_PAGE_BYTES == 0
    assert held.tobytes() == contents(3, size).tobytes()
    memory = weakref.ref(held.base)
    view = held[5:]
    del held
    assert memory() is not None
    del view
    assert memory() is None


def test_smaller_weights_share_a_slab_that_is_freed_with_the_last_one() -> None:
    slabs = Slabs()
    contents = [RNG.integers(0, 256, size, np.uint8) for size in (3, 64, LARGE_PAGE_BYTES - 1, 100)]
    placed = [slabs.placed(content) for content in contents]
    for copy, content in zip(placed, contents, strict=True):
        np.testing.assert_array_equal(copy, content)
    starts = [copy.ctypes.data - placed[0].ctypes.data for copy in placed]
    assert starts == [0, 64, 128, 128 + LARGE_PAGE_BYTES]
    assert placed[0].ctypes.data % ALIGNMENT_BYTES == 0
    first = weakref.ref(placed[0].base)
    others = [slabs.placed(contents[2]) for _ in range(SLAB_BYTES // LARGE_PAGE_BYTES)]
    assert others[-1].base is not placed[0].base  # the first slab has no room for it
    del copy, others, placed[1:]
    gc.collect()
    assert first() is not None
    placed.clear()
    gc.collect()
    assert first() is None
    large = np.zeros(LARGE_PAGE_BYTES, np.uint8)
    assert slabs.placed(large).ctypes.data % LARGE_PAGE_BYTES == 0


def test_weights_of_one_checksum_are_not_mistaken_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_weights, "checksum", lambda _: 0)
    weights = SharedWeights()
    held = [weights.array_like(contents(seed)) for seed in (0, 1, 0, 1)]
    assert [array.tobytes() for array in held] == [contents(seed).tobytes() for seed in (0, 1, 0, 1)]
    assert held[0] is held[2]


@pytest.mark.parametrize("size", [0, 7, 8192, 8192 * 130 + 100])
def test_a_checksum_shows_what_was_changed_or_moved(size: int) -> None:
    content = np.random.default_rng(0).integers(0, 256, size, np.uint8)
    sums = {checksum(content)}
    rows = size // 8192
    for place in {0, size // 2, size - 1} if size else set():
        changed = content.copy()
        changed[place] ^= 1
        sums.add(checksum(changed))
    # two rows are exchanged, two words of a row, and words of two rows
    for first, second in ((0, 8192), (0, 8), (8, 8192 + 16)) if rows > 1 else ():
        changed = content.copy()
        length = 8192 if second == 8192 else 8
        changed[first : first + length] = content[second : second + length]
        changed[second : second + length] = content[first : first + length]
        sums.add(checksum(changed))
    assert len(sums) == {0: 1, 7: 4, 8192: 4}.get(size, 7)
    assert checksum(content) in sums


def test_an_array_that_nobody_holds_is_freed() -> None:
    weights = SharedWeights()
    held = weights.array_like(contents(0))
    freed = weakref.ref(held)
    assert weights.array_like(contents(0)) is held
    del held
    assert freed() is None
    assert weights.array_like(contents(0)).tobytes() == contents(0).tobytes()


def test_threads_that_pack_at_the_same_time_get_one_array() -> None:
    weights = SharedWeights()
    together = threading.Barrier(THREADS)
    found: list[np.ndarray] = []

    def pack() -> None:
        together.wait()
        found.append(weights.array_like(contents(0, 100_000)))

    threads = [threading.Thread(target=pack) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(array) for array in found}) == 1


def test_weights_of_one_source_are_packed_once_and_a_changed_one_anew() -> None:
    computed: list[int] = []

    def halves(inputs: tuple[Array, ...]) -> tuple[Array, ...]:
        computed.append(len(inputs))
        return inputs[0][:2], inputs[0][2:]

    def packed(weight: Array, code: str = "halves", packing: WeightPacking | None = PANELS) -> list[Any]:
        part = WeightPart((0, 1), lambda: (weight,), halves, code)
        views = (matrix(0, 2, 6), matrix(1, 2, 6))
        buffers = tuple(Buffer(WEIGHT, number, view.type) for number, view in enumerate(views))
        plan = plan_of(buffers, *((view, packing) for view in views))
        return list(packed_weights(plan, [part], content_of=content_of))

    weight = RNG.random((4, 6), np.float32)
    first = packed(weight)
    again = packed(weight.copy())
    assert len(computed) == 1
    assert all(map(is_, again, first))
    others = [packed(weight, "other code"), packed(weight, packing=None), packed(-weight)]
    assert len(computed) == 4
    assert all(map(is_, others[0], first))  # of equal contents
    assert others[1][0].tobytes() == weight[:2].tobytes()
    assert others[2][1].tobytes() != first[1].tobytes()
    del first, again, others
    gc.collect()
    packed(weight)
    assert len(computed) == 5  # nobody held it


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weights_that_differ_in_signs_alone_are_told_apart(dtype: Any) -> None:
    weight = RNG.random((64, 256)).astype(dtype)
    found = {content_of(weight)}
    for number in range(40):
        signs = RNG.choice(np.array([-1, 1], dtype), (64, 1)) * RNG.choice(np.array([-1, 1], dtype), 256)
        found.add(content_of(weight * signs))
        assert len(found) == number + 2
    # three signs of which ContentHash alone misses the change: of two adjacent words of a lane
    changed = weight.reshape(-1).view(np.uint64).copy()
    changed[0] ^= np.uint64(1 << 63)
    changed[64] ^= np.uint64((1 << 63) | (1 << 31))
    assert content_of(changed.view(dtype).reshape(weight.shape)) not in found


def program_of(rows: int, weight: np.ndarray) -> Any:
    payload = PayloadText()
    product = payload.matmul(payload.argument(rows, weight.shape[0]), payload.weight(weight))
    return tuner.compile_program(payload.text(product), target="cpu")


def test_programs_of_other_rows_share_their_weights_which_are_freed_with_the_last_one() -> None:
    weight = RNG.standard_normal((48, 64)).astype(np.float32)
    few, more = program_of(40, weight), program_of(70, weight)
    assert few.code != more.code
    (shared,) = few.weights
    assert more.weights[0] is shared
    (other,) = program_of(40, weight + 1).weights
    assert other.tobytes() != shared.tobytes()
    x = RNG.standard_normal((70, 48)).astype(np.float32)
    np.testing.assert_allclose(more(x), x @ weight, rtol=1e-4, atol=1e-5)
    freed = weakref.ref(shared)
    del few, shared
    np.testing.assert_allclose(more(x), x @ weight, rtol=1e-4, atol=1e-5)
    assert freed() is not None
    del more
    gc.collect()
    assert freed() is None


def test_a_loaded_program_maps_the_file_so_that_processes_share_its_weights(tmp_path: Any) -> None:
    program = compiled_function(np.linspace(0, 3, 8).astype(np.float32))
    program.export(tmp_path / "program")
    loaded = load(tmp_path / "program")
    assert isinstance(loaded, FusedFunction)
    np.testing.assert_array_equal(loaded.weights[0], program.weights[0])
    assert not loaded.weights[0].flags.writeable
    assert f"{tmp_path}/program/{WEIGHTS}" in Path("/proc/self/maps").read_text()
