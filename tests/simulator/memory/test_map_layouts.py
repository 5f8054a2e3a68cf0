import numpy as np
import pytest

from tuner.core.errors import UsageError
from tuner.core.gpu import TensorMapLayout
from tuner.simulator.memory.async_copies import extent_bytes, tensor_of

LAYOUT = TensorMapLayout((64, 8), (128,), (32, 4), 6, swizzle=2)


def test_a_layout_over_memory_views_it_outermost_first() -> None:
    memory = np.zeros(2048, np.uint8)
    tensor = tensor_of(LAYOUT, memory, 256)
    tensor.array[1, 3] = 7
    assert memory[256 + 128 + 6 : 256 + 128 + 8].view(np.float16)[0] == 7
    assert (tensor.array.shape, tensor.box, tensor.swizzle_bytes) == ((8, 64), (4, 32), 64)
    assert extent_bytes(LAYOUT) == 1024


def test_tf32_is_f32_that_copies_round() -> None:
    layout = TensorMapLayout((8,), (), (8,), 11)
    assert tensor_of(layout, np.zeros(32, np.uint8)).is_tf32


def test_rows_with_gaps_are_not_simulated() -> None:
    layout = TensorMapLayout((8, 8), (64,), (8, 8), 7)
    with pytest.raises(UsageError, match=r"found strides \(64, 4\), allowed a contiguous tensor"):
        tensor_of(layout, np.zeros(1024, np.uint8))
