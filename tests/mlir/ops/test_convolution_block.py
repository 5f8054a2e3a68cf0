"""``tuner.convolution_block``: the code of a tile of a convolution, that it is right, what is refused."""

from typing import Any

import numpy as np
import pytest

from tests.mlir.ops import block_runs
from tests.mlir.ops.one_op import apply, line_of
from tests.texts import text_beside

FILL = "linalg.fill ins(%zero : f32) outs(%sums : memref<1x{filters}x1x4xf32>)"
DYNAMIC, PAYLOAD, K_GROUPS, ROWS = (
    text_beside(__file__, name) for name in ("DYNAMIC", "PAYLOAD", "K_GROUPS", "ROWS")
)


def line(along: str = "filters", **knobs: int) -> str:
    return line_of("convolution_block", along=along, **({"channels": 0, "lanes": 16, "unroll": 1} | knobs))


def payload(filters: int = 16, fill: str = FILL, element: str = "f32") -> str:
    """Returns f(x, w, y): tiles of ``filters`` of 32 filters, of one row of the output, 4 x 4 pixels."""
    text = PAYLOAD.replace("FILL\n", f"{fill.format(filters=filters)}\n").replace("FILTERS", str(filters))
    return text.replace("xf32", f"x{element}").replace(": f32", f": {element}")


def require_sums(script: str, text: str, columns: int, start: float = 0) -> None:
    """Runs a payload on random operands; the result must be the start and numpy's sums."""
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((1, 3, 6, 6), (3, 3, 3, 32)))
    y = np.full((1, 32, 4, 4), np.nan, np.float32)
    panels = np.ascontiguousarray(w.reshape(27, 32 // columns, columns).transpose(1, 0, 2)) if columns else w
    block_runs.run(script, text, (x, panels, y))
    windows = np.lib.stride_tricks.sliding_window_view(x[0].astype(np.float64), (3, 3), axis=(1, 2))
    expected = start + np.einsum("chwab,abcf->fhw", windows, w.astype(np.float64))
    np.testing.assert_allclose(y[0], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("filters", [1, 4, 8, 16, 32])
@pytest.mark.parametrize(
    "knobs",
    [
        *({}, {"along": "last"}, {"channels": 1, "unroll": 3}, {"along": "last", "unroll": 3}),
        {"pixels": 3, "lanes": 8},  # two groups of two
        {"pixels": 3, "lanes": 8, "channels": 1, "prefetch": 1},
        {"channels": 2},  # does not divide 3: all channels
    ],
    ids=str,
)
def test_sums_are_those_of_the_convolution(knobs: dict[str, Any], filters: int) -> None:
    require_sums(line(**knobs), payload(filters), filters if filters < 32 else 0)


def test_without_a_fill_of_zero_the_buffer_is_added_to() -> None:
    two = "%two = arith.constant 2.0 : f32\n        " + FILL.replace("%zero", "%two")
    for script in (line(), line("last")):
        require_sums(script, payload(8, fill=two), 8, start=2)


def test_the_next_tile_of_a_row_is_fetched_ahead() -> None:
    ahead = line(prefetch=1)
    assert "memref.prefetch" not in apply(line(), payload())
    assert (
        apply(ahead, payload()).count("memref.prefetch") == 3
    )  # the first and the last pixel, the next panel
    require_sums(ahead, payload(8), 8)


def test_the_tiles_of_a_panel_fetch_a_share_of_the_next_panel_each() -> None:
    script = line(prefetch=2)
    code = apply(script, payload(8))
    assert code.count("memref.prefetch") == 1
    # four rows are tiles of a panel of 27 x 8 weights: 54 elements each, by 2 in each of 27 steps
    assert "c54" in code
    assert "c216" in code
    require_sums(script, payload(8), 8)


def test_groups_of_pixels_fetch_a_share_each_in_loops_that_stay_loops() -> None:
    code = apply(line(prefetch=2, pixels=2), payload(8))
    assert code.count("memref.alloca") == 1
    assert code.count("memref.prefetch") == 1  # one loop over two groups
    assert "c27" in code  # 216 weights of a panel, 4 rows of two groups
    assert "unroll" in code


def test_a_row_of_the_input_is_loaded_once_for_all_rows_of_the_window() -> None:
    assert apply(line("last"), ROWS).count("vector.load %arg0") == 6  # of 6 rows; 4 x 3 rows are multiplied
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((6, 18), (3, 3)))
    y = np.full((4, 16), np.nan, np.float32)
    block_runs.run(line("last"), ROWS, (x, w, y))
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), (3, 3))
    np.testing.assert_allclose(y, np.einsum("hwab,ab->hw", windows, w), rtol=1e-4, atol=1e-5)


INTEGERS = payload(4, element="i32").replace("mulf", "muli").replace("addf", "addi").replace("0.0 :", "0 :")
BECOMES = {
    "convolution_block": (line(), payload()),
    "convolution_block_dots": (line(), K_GROUPS),
    "convolution_block_integers": (line(), INTEGERS),
}
REFUSED = [
    (line("rows"), payload(), "along: found rows, allowed filters or last"),
    (line(), DYNAMIC, r"found a convolution of memref<\?x3xf32> x .* allowed memrefs of static sizes"),
    (line(lanes=8, dots=1), K_GROUPS, "found vdpbf16ps with 8 lanes, allowed 16"),
]
