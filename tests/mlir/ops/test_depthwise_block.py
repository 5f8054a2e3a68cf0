"""``tuner.depthwise_block``: the code of rows of a channel, that it is right, what is refused."""

import numpy as np
import pytest

from tests.mlir.ops import block_runs
from tests.mlir.ops.one_op import apply, line_of
from tests.mlir.ops.test_convolution_block import DYNAMIC
from tests.mlir.ops.test_convolution_block import payload as of_filters
from tests.texts import text_beside

PADDED = text_beside(__file__, "PADDED")
FILL = "linalg.fill ins(%zero"


def line(lanes: int = 8, columns: int = 0) -> str:
    return line_of("depthwise_block", columns=columns, lanes=lanes)


def require_sums(script: str, text: str, start: float = 0) -> None:
    """Runs a payload on random operands; the result must be the start and numpy's sums."""
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((1, 3, 4, 7), (3, 3, 3)))
    y = np.full((1, 3, 4, 7), np.nan, np.float32)
    block_runs.run(script, text, (x, w, y))
    padded = np.pad(x[0].astype(np.float64), ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    expected = start + np.einsum("chwab,cab->chw", windows, w.astype(np.float64))
    np.testing.assert_allclose(y[0], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("lanes", "columns"), [(8, 0), (4, 0), (4, 4), (16, 0)])
def test_sums_are_those_of_the_padded_image(lanes: int, columns: int) -> None:
    require_sums(line(lanes, columns), PADDED)


def test_without_a_fill_of_zero_the_buffer_is_added_to() -> None:
    two = PADDED.replace("%zero = arith.constant 0.0", "%zero = arith.constant 2.0")
    require_sums(line(), two, start=2)


def test_a_row_of_padding_is_skipped_and_others_have_no_condition() -> None:
    """Of the four rows of a tile of two, the first and the last may be padding."""
    assert apply(line(), PADDED).count("scf.if") == 2


UNPLACED = PADDED.replace("%padded[0, %c, %h, 0]", "%padded[0, %c, 0, %h]")
BECOMES = {"depthwise_block": (line(), PADDED)}
REFUSED = [
    (line(), DYNAMIC, r"found a convolution of memref<\?x3xf32> x .* allowed memrefs of static sizes"),
    (line(), of_filters(), "found another convolution, allowed a depthwise one of channels first"),
    (line(), UNPLACED, "found columns of padding at an unknown place, allowed whole rows of an image"),
]
