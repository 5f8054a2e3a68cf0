"""linalg.pack and linalg.unpack, with padding, orders and dynamic tiles, on the CPU and the simulator."""

from typing import Any

import numpy as np
import pytest

import tuner
from tests.models.file_check import filled
from tests.texts import text_beside

pytestmark = pytest.mark.mlir
X = np.arange(130, dtype=np.float32).reshape(10, 13)
ORDERS = {"": "3x2", "outer_dims_perm = [1, 0]": "2x3"}


def packed(order: str) -> Any:
    """Returns X in tiles of 8 columns by 4 rows, with 1.5 as padding."""
    whole = np.full((12, 16), 1.5, np.float32)
    whole[:10, :13] = X
    tiles = whole.reshape(3, 4, 2, 8).transpose(0, 2, 3, 1)
    return tiles.transpose(1, 0, 2, 3) if order else tiles


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("target", ["cpu", pytest.param("simulator", marks=pytest.mark.slow)])
def test_partial_tiles_are_padded_in_any_order_and_come_back(order: str, target: str) -> None:
    text = filled(__file__, "PADDED", order=order, outer=ORDERS[order])
    tiles, back = tuner.compile_program(text, target)(X, np.zeros_like(X))
    np.testing.assert_array_equal(tiles, packed(order))
    np.testing.assert_array_equal(back, X)


@pytest.mark.parametrize("order", ORDERS)
def test_tiles_and_shapes_may_be_known_at_run_time_only(order: str) -> None:
    function = tuner.compile_program(filled(__file__, "DYNAMIC", order=order), "cpu")
    expected = packed(order)
    tiles, back = function(X, np.zeros_like(X), np.zeros(expected.shape, np.float32), 4)
    np.testing.assert_array_equal(tiles, expected)
    np.testing.assert_array_equal(back, X)


def test_tiles_that_divide_need_no_padding_and_a_product_may_be_of_packed_matrices() -> None:
    numbers = np.arange(48, dtype=np.int32).reshape(8, 6)
    found = tuner.compile_program(text_beside(__file__, "WHOLE"), "cpu")(numbers)
    np.testing.assert_array_equal(found, numbers.reshape(4, 2, 6).transpose(0, 2, 1))
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((16, 24), (24, 32)))
    found = tuner.compile_program(text_beside(__file__, "OF_MATMUL"), "cpu")(a, b)
    np.testing.assert_array_equal(found, a @ b)


def test_a_partial_tile_without_a_padding_value_is_refused() -> None:
    with pytest.raises((tuner.CandidateError, tuner.UsageError), match="padding"):
        tuner.compile_program(text_beside(__file__, "PARTIAL"), "cpu")


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("target", ["cpu", pytest.param("simulator", marks=pytest.mark.slow)])
def test_packs_of_buffers_become_loops(order: str, target: str) -> None:
    expected = packed(order)
    tiles = np.zeros(expected.shape, np.float32)
    back = np.zeros_like(X)
    tuner.compile_program(filled(__file__, "BUFFERS", order=order, outer=ORDERS[order]), target)(
        X, tiles, back
    )
    np.testing.assert_array_equal(tiles, expected)
    np.testing.assert_array_equal(back, X)
