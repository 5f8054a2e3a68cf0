"""Weights as panels: pairs of rows next to each other, zeros for what is missing."""

import numpy as np

from tuner.core.fusions import WeightPacking
from tuner.payload.packed_weights import pack, packed_shape


def test_pairs_of_rows_lie_next_to_each_other_and_rows_are_added_up_to_the_depth() -> None:
    weight = np.arange(1, 16, dtype=np.float32).reshape(5, 3)
    packing = WeightPacking(2, 2, depth=4)
    shape = packed_shape(weight.shape, packing)
    target = np.full(shape, np.nan, np.float32)
    pack(weight, packing, target)
    assert shape == (2, 4, 2, 2)
    first, second = target.reshape(2, 4, 4)
    np.testing.assert_array_equal(first, [[1, 4, 2, 5], [7, 10, 8, 11], [13, 0, 14, 0], [0, 0, 0, 0]])
    np.testing.assert_array_equal(second, [[3, 6, 0, 0], [9, 12, 0, 0], [15, 0, 0, 0], [0, 0, 0, 0]])


def test_unsigned_bytes_have_128_added_to_them() -> None:
    weight = np.array([[1, -128, 3], [127, -128, 5], [-6, -128, 7], [8, -128, 9], [10, -128, 11]], np.int8)
    packing = WeightPacking(2, 4, depth=4, unsigned=True)
    shape = packed_shape(weight.shape, packing)
    target = np.full(shape, 1, np.int8)
    pack(weight, packing, target)
    assert shape == (2, 2, 2, 4)
    first, second = target.view(np.uint8).reshape(2, 2, 8).astype(np.int16) - 128
    np.testing.assert_array_equal(first, [[1, 127, -6, 8, *[-128] * 4], [10, 0, 0, 0, -128, 0, 0, 0]])
    np.testing.assert_array_equal(second, [[3, 5, 7, 9, 0, 0, 0, 0], [11, 0, 0, 0, 0, 0, 0, 0]])


def test_each_run_of_rows_is_padded_on_its_own() -> None:
    weight = np.arange(1, 13, dtype=np.float32).reshape(6, 2)
    packing = WeightPacking(2, 2, depth=2, run=3)
    shape = packed_shape(weight.shape, packing)
    target = np.full(shape, np.nan, np.float32)
    pack(weight, packing, target)
    assert shape == (1, 4, 2, 2)
    expected = [[1, 3, 2, 4], [5, 0, 6, 0], [7, 9, 8, 10], [11, 0, 12, 0]]
    np.testing.assert_array_equal(target.reshape(4, 4), expected)
