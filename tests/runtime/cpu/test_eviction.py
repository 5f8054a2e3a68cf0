"""Operands are out of the caches when a call of a cold problem begins; nothing else changes."""

import numpy as np
import pytest

from tuner.core.problem import Matmul
from tuner.payload.reference import Array
from tuner.runtime.cpu.memory import placed_empty
from tuner.runtime.cpu.timing_conditions import LINE_BYTES, Eviction, eviction_of, lines_of

pytestmark = pytest.mark.mlir


@pytest.mark.parametrize("offset", [0, 16, 48])
@pytest.mark.parametrize("size", [1, 3, 4, 5, 16, 100])
def test_every_line_that_an_array_touches_is_evicted(size: int, offset: int) -> None:
    array = placed_empty((size,), np.dtype(np.float32), offset)
    start, lines = lines_of(array)
    touched = {byte // LINE_BYTES for byte in range(array.ctypes.data, array.ctypes.data + array.nbytes)}
    assert {start // LINE_BYTES + line for line in range(lines)} == touched


def test_an_eviction_changes_no_number() -> None:
    arrays: list[Array] = [np.arange(1000.0, dtype=np.float32), np.ones((33, 7))]
    copies = [each.copy() for each in arrays]
    Eviction(arrays)()
    assert all(np.array_equal(one, other) for one, other in zip(arrays, copies, strict=True))


@pytest.mark.parametrize(("cache", "evicted"), [("warm", 0), ("weights-cold", 1), ("cold", 4)])
def test_what_is_evicted_follows_from_the_state(cache: str, evicted: int) -> None:
    operands = [np.zeros(4, np.float32) for _ in range(4)]
    found = eviction_of(Matmul(2, 2, 2, epilogue="bias_relu", cache=cache), operands)
    assert (found is None) == (evicted == 0)
    if found is not None:
        assert len(found.arrays) == evicted
        assert any(each is operands[1] for each in found.arrays)
