"""Weights as panels: K groups next to each other, zeros for what is missing."""

import numpy as np
import pytest

from tuner.core.packings import WeightPacking
from tuner.payload.packed_weights import pack, packed_shape

BYTES = np.array([[1, -128, 3], [127, -128, 5], [-6, -128, 7], [8, -128, 9], [10, -128, 11]], np.int8)


def of_floats(rows: int, columns: int) -> np.ndarray:
    return np.arange(1, rows * columns + 1, dtype=np.float32).reshape(rows, columns)


@pytest.mark.parametrize(
    ("weight", "packing", "shape", "panels"),
    [
        (  # pairs of rows lie next to each other, and rows are added up to the depth
            of_floats(5, 3),
            WeightPacking(2, 2, depth=4),
            (2, 4, 2, 2),
            [
                [[1, 4, 2, 5], [7, 10, 8, 11], [13, 0, 14, 0], [0, 0, 0, 0]],
                [[3, 6, 0, 0], [9, 12, 0, 0], [15, 0, 0, 0], [0, 0, 0, 0]],
            ],
        ),
        (  # unsigned bytes have 128 added to them
            BYTES,
            WeightPacking(2, 4, depth=4, unsigned=True),
            (2, 2, 2, 4),
            [
                [[1, 127, -6, 8, *[-128] * 4], [10, 0, 0, 0, -128, 0, 0, 0]],
                [[3, 5, 7, 9, 0, 0, 0, 0], [11, 0, 0, 0, 0, 0, 0, 0]],
            ],
        ),
        (  # each run of rows is padded on its own
            of_floats(6, 2),
            WeightPacking(2, 2, depth=2, run=3),
            (1, 4, 2, 2),
            [[[1, 3, 2, 4], [5, 0, 6, 0], [7, 9, 8, 10], [11, 0, 12, 0]]],
        ),
    ],
    ids=["pairs", "bytes", "runs"],
)
def test_rows_are_packed(
    weight: np.ndarray, packing: WeightPacking, shape: tuple[int, ...], panels: list[list[list[int]]]
) -> None:
    assert packed_shape(weight.shape, packing) == shape
    target = np.full(shape, 77, weight.dtype)
    pack(weight, packing, target)
    found = target.view(np.uint8).astype(np.int16) - 128 if packing.unsigned else target
    np.testing.assert_array_equal(found.reshape(np.shape(panels)), panels)
