"""Weights as panels: pairs of rows next to each other, zeros for what is missing."""

import numpy as np

from tuner.core.grouped_program import WeightPacking
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
