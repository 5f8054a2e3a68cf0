"""``tuner.lanes_along_k``: products of few columns are right, and what is refused."""

import numpy as np
import pytest

from tests.default_suite import ALL
from tests.mlir.ops import block_runs
from tests.mlir.ops.block_runs import exact, payload, require_product, run
from tests.mlir.ops.one_op import line_of

drawn_f32 = block_runs.small_numbers(np.float32)


def line(lanes: int = 16) -> str:
    return line_of("lanes_along_k", lanes=lanes)


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize("layout", ["nn", "nt"])
@pytest.mark.parametrize("n", range(1, 9))
def test_every_number_of_columns_multiplies_ragged_rows_and_steps(n: int, layout: str) -> None:
    require_product(line(), (29, n, 39), drawn_f32, layout=layout, emulates=False)


@pytest.mark.parametrize("sizes", [(12, 4, 64), (16, 1, 32), (3, 2, 5), (1, 3, 1), (1, 8, 130)], ids=str)
def test_whole_tiles_and_the_thinnest_shapes_multiply(sizes: block_runs.Sizes) -> None:
    require_product(line(), sizes, drawn_f32, emulates=False)


@pytest.mark.parametrize("n", [1, 3, 4])
def test_registers_of_eight_elements_hold_f32_or_f64(n: int) -> None:
    require_product(line(8), (29, n, 39), drawn_f32, emulates=False)
    require_product(line(8), (29, n, 39), block_runs.small_numbers(np.float64), emulates=False)


def test_without_a_fill_c_is_added_to() -> None:
    require_product(line(), (13, 3, 18), drawn_f32, fill="", emulates=False)


def test_nan_and_infinities_stay_in_their_rows() -> None:
    a, b, c = drawn_f32((5, 7)), drawn_f32((7, 3)), np.zeros((5, 3), np.float32)
    a[1, 6], a[2, 0] = np.nan, np.inf
    b[0] = 1
    run(line(), payload(5, 3, 7, "f32"), (a, b, c))
    with np.errstate(invalid="ignore"):
        expected = exact(a, b).astype(np.float32)
    np.testing.assert_array_equal(c, expected)


BECOMES = {"lanes_along_k": (line(), payload(2, 3, 9, "f32"))}
SHOWN = [(line(), payload(1, 4, 64, "f32"))]
REFUSED = [
    (line(12), payload(8, 4, 64, "f32"), "found 12 lanes, allowed a power of two from 2 on"),
    (line(8), payload(8, 5, 64, "f32"), "found a matmul of 5 columns, allowed 4"),
    (line(), payload(8, 4, 64, "f32", "tn"), "found a matmul of layout tn, allowed nn or nt"),
    (line(), payload(8, 4, 64, "bf16"), "found a matmul of bf16 into f32, allowed f32 into f32 or f64"),
]
