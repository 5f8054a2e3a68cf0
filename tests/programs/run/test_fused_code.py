"""Weights in one block: panels, pairs of rows, parts of buffers; equal ones once."""

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tuner.core.errors import CandidateError
from tuner.core.fusions import (
    ARGUMENT,
    CONTRACTION,
    WEIGHT,
    Buffer,
    FusedProgram,
    Fusion,
    FusionCode,
    TensorType,
    View,
    WeightPacking,
)
from tuner.core.numpy_types import DTYPES
from tuner.programs.run import fused_code
from tuner.programs.run.fused_code import (
    ALIGNMENT_BYTES,
    POOL_LIMIT,
    ArrayType,
    ResultPool,
    WeightPlan,
    fill_weights,
    require_processor,
    weight_plan,
)

PANELS = WeightPacking(4)
PAIRS = WeightPacking(4, interleave=2)


def matrix(buffer: int, rows: int, columns: int, element: str = "f32", offset: int = 0) -> View:
    return View(buffer, offset, TensorType((rows, columns), element), (columns, 1))


def plan_of(buffers: tuple[Buffer, ...], *reads: tuple[View, WeightPacking | None]) -> WeightPlan:
    fusions = tuple(Fusion(CONTRACTION, "", (view,), (), ()) for view, _ in reads)
    codes = tuple(FusionCode("", (packing,)) for _, packing in reads)
    return weight_plan(FusedProgram(fusions, buffers, (), ()), codes)


def block_of(plan: WeightPlan, *weights: np.ndarray) -> np.ndarray:
    block = np.full(plan.bytes, 0xFF, np.uint8)
    fill_weights(plan, weights, block)
    return block


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
    found = block_of(plan, weight.astype(dtype)).view(dtype)[: plan.places[0].bytes // dtype.itemsize]
    assert found.astype(int).tolist() == expected


def test_a_transposed_part_of_a_weight_is_packed_as_the_fusion_sees_it() -> None:
    weight = np.arange(24, dtype=np.float32).reshape(4, 6)
    view = View(0, 6, TensorType((6, 2), "f32"), (1, 6))  # columns 1 and 2 are rows 1 and 2 of the buffer
    plan = plan_of((Buffer(WEIGHT, 0, TensorType((4, 6), "f32")),), (view, WeightPacking(2)))
    found = block_of(plan, weight).view(np.float32)[:12]
    assert found.reshape(6, 2).tolist() == weight[1:3].T.tolist()


def test_filters_are_the_columns_of_a_convolution_s_weights() -> None:
    weight = np.arange(6 * 2 * 3, dtype=np.float32).reshape(6, 2, 3)  # filters x channels x window
    view = View(0, 0, TensorType((6, 2, 3), "f32"), (6, 3, 1))
    plan = plan_of((Buffer(WEIGHT, 0, view.type),), (view, WeightPacking(3, order=(2, 1, 0))))
    found = block_of(plan, weight).view(np.float32)[:36].reshape(2, 3, 2, 3)  # panel, window, channel, filter
    assert np.array_equal(found[0], weight[:3].transpose(2, 1, 0))
    assert np.array_equal(found[1], weight[3:].transpose(2, 1, 0))


def test_what_two_fusions_read_alike_is_stored_once() -> None:
    view = matrix(0, 2, 6)
    packings = (PANELS, None, WeightPacking(2))
    plan = plan_of((Buffer(WEIGHT, 0, view.type),), (view, PANELS), *((view, each) for each in packings))
    assert [(place.packing, place.bytes) for place in plan.places] == list(
        zip(packings, (64, 48, 48), strict=True)
    )
    assert [plan.offset_bytes(view, packing) for packing in packings] == [0, 64, 128]


def test_a_part_that_is_not_packed_is_a_place_in_its_buffer() -> None:
    whole, part = matrix(1, 4, 6), matrix(1, 2, 6, offset=12)
    buffers = (Buffer(ARGUMENT, 0, whole.type), Buffer(WEIGHT, 0, whole.type))
    plan = plan_of(buffers, (whole, None), (part, None))
    assert len(plan.places) == 1
    assert plan.offset_bytes(part, None) == 48
    weight = np.arange(24, dtype=np.float32).reshape(4, 6)
    found = block_of(plan, weight)[48:96].view(np.float32)
    assert found.reshape(2, 6).tolist() == weight[2:].tolist()


def test_only_a_matrix_is_packed() -> None:
    view = View(0, 0, TensorType((2, 3, 4), "f32"), (12, 4, 1))
    with pytest.raises(ValueError, match=r"shape \(2, 3, 4\) cannot be packed: it is no matrix"):
        plan_of((Buffer(WEIGHT, 0, view.type),), (view, PANELS))


# Code for another processor is refused before it is loaded.


def test_another_processor_and_tiles_that_the_system_refuses_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refused = "folder: needs sve and neon, which this processor does not have"
    with pytest.raises(CandidateError, match=refused):
        require_processor(("sve", "neon"), "folder")
    monkeypatch.setattr(fused_code, "own_flags", lambda: {"amx_tile", "amx_bf16"})
    monkeypatch.setattr(fused_code, "may_use_tiles", lambda: False)
    with pytest.raises(CandidateError, match="main: needs AMX, which the operating system refuses"):
        require_processor(("amx-bf16",), "main")


# Results are used again only when nobody can see them any more.

F32 = np.dtype(np.float32)
TYPES = (ArrayType((2, 3), F32), ArrayType((), F32))


@pytest.fixture
def pool() -> ResultPool:
    return ResultPool(TYPES, 1, (7, 8))


def test_a_frame_has_room_for_arguments_then_results_then_what_is_constant(pool: ResultPool) -> None:
    taken = pool.take()
    assert list(taken.frame) == [0, *[each.ctypes.data for each in taken.arrays], 7, 8]
    assert [each.ctypes.data % ALIGNMENT_BYTES for each in taken.arrays] == [0, 0]
    assert [(each.shape, each.dtype) for each in taken.arrays] == [((2, 3), F32), ((), F32)]


@pytest.mark.parametrize(
    "hold",
    [
        lambda arrays: arrays[0],
        lambda arrays: arrays[1],
        lambda arrays: arrays[0][1],
        lambda arrays: arrays[0].reshape(3, 2)[1:].T,
        lambda arrays: memoryview(arrays[0]),
        lambda arrays: np.from_dlpack(arrays[0]),
        lambda arrays: arrays[0].base,
    ],
    ids=["array", "second", "row", "view of a view", "memoryview", "dlpack", "owner"],
)
def test_results_that_somebody_holds_are_not_used_again(
    pool: ResultPool, hold: Callable[[tuple[Any, ...]], object]
) -> None:
    assert pool.take() is pool.take()  # nobody holds it
    taken = pool.take()
    held = hold(taken.arrays)
    assert not taken.is_free
    assert pool.take() is not taken
    del held
    gc.collect()
    assert taken.is_free


def test_a_pool_keeps_few_results(pool: ResultPool) -> None:
    held = [pool.take().arrays[0] for _ in range(POOL_LIMIT + 3)]
    assert len({each.ctypes.data for each in held}) == POOL_LIMIT + 3
    first = held[0].ctypes.data
    del held
    assert first not in {pool.take().arrays[0].ctypes.data for _ in range(10)}
