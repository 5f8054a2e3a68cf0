"""Results are used again only when nobody can see them any more."""

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tuner.programs.run.fused_code import ALIGNMENT_BYTES, POOL_LIMIT, ArrayType, ResultPool, aligned_bytes

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


def test_results_that_nobody_holds_are_used_again(pool: ResultPool) -> None:
    assert pool.take() is pool.take()


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


def test_bytes_begin_at_a_cache_line() -> None:
    assert [aligned_bytes(size).ctypes.data % ALIGNMENT_BYTES for size in (1, 100)] == [0, 0]
