"""``tuner.convolution_block``: the code of a tile of a convolution, that it is right, what is refused."""

from typing import Any

import numpy as np
import pytest

from tests.mlir.ops import block_runs
from tests.mlir.ops.conftest import Apply
from tests.texts import text_beside

Array = Any
FILL = "linalg.fill ins(%zero : f32) outs(%sums : memref<1x{filters}x1x4xf32>)"
DYNAMIC, PAYLOAD, K_GROUPS = (text_beside(__file__, name) for name in ("DYNAMIC", "PAYLOAD", "K_GROUPS"))


def line(along: str = "filters", lanes: int = 16, channels: int = 0, unroll: int = 1) -> str:
    knobs = f'along = "{along}", channels = {channels} : i64, lanes = {lanes} : i64, unroll = {unroll} : i64'
    return f'"tuner.convolution_block"(%func) {{{knobs}}} : (!transform.any_op) -> ()'


def payload(filters: int = 16, fill: str = FILL, element: str = "f32") -> str:
    """Returns f(x, w, y): tiles of ``filters`` of 32 filters, of one row of the output, 4 x 4 pixels."""
    text = PAYLOAD.replace("FILL\n", f"{fill.format(filters=filters)}\n").replace("FILTERS", str(filters))
    return text.replace("xf32", f"x{element}").replace(": f32", f": {element}")


def run(apply: Apply, script: str, text: str, columns: int) -> tuple[Array, Array]:
    """Returns what the code computes of random operands, and numpy's result."""
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((1, 3, 6, 6)), rng.standard_normal((3, 3, 3, 32))
    x, w = x.astype(np.float32), w.astype(np.float32)
    y = np.full((1, 32, 4, 4), np.nan, np.float32)
    panels = np.ascontiguousarray(w.reshape(27, 32 // columns, columns).transpose(1, 0, 2)) if columns else w
    block_runs.run(apply, script, text, (x, panels, y))
    windows = np.lib.stride_tricks.sliding_window_view(x[0].astype(np.float64), (3, 3), axis=(1, 2))
    return y[0], np.einsum("chwab,abcf->fhw", windows, w.astype(np.float64))


@pytest.mark.drawn(2)
@pytest.mark.parametrize("filters", [1, 4, 8, 16, 32])
@pytest.mark.parametrize(
    "knobs",
    [
        *({}, {"along": "last"}, {"channels": 1, "unroll": 3}, {"along": "last", "unroll": 3}),
        {"channels": 2},  # does not divide 3: all channels
    ],
    ids=str,
)
def test_sums_are_those_of_the_convolution(knobs: dict[str, Any], filters: int, apply: Apply) -> None:
    found, expected = run(apply, line(**knobs), payload(filters), filters if filters < 32 else 0)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_without_a_fill_of_zero_the_buffer_is_added_to(apply: Apply) -> None:
    two = "%two = arith.constant 2.0 : f32\n        " + FILL.replace("%zero", "%two")
    for script in (line(), line("last")):
        found, expected = run(apply, script, payload(8, fill=two), 8)
        np.testing.assert_allclose(found, expected + 2, rtol=1e-4, atol=1e-5)


def test_the_next_tile_of_a_row_is_fetched_ahead(apply: Apply) -> None:
    ahead = line().replace("unroll", "prefetch = 1 : i64, unroll")
    assert "memref.prefetch" not in apply(line(), payload())
    assert apply(ahead, payload()).count("memref.prefetch") == 2  # the first and the last pixel
    found, expected = run(apply, ahead, payload(8), 8)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_k_groups_are_multiplied_by_dot_products_and_integers_as_such(apply: Apply) -> None:
    text = apply(line(), K_GROUPS)
    assert "vector.fma" not in text
    assert text.count("x86.avx512.dot") == 1
    assert "vector.broadcast" in text
    integers = payload(element="i32").replace("mulf", "muli").replace("addf", "addi").replace("0.0 :", "0 :")
    text = apply(line(), integers)
    assert "arith.muli" in text
    assert "vector.fma" not in text


SHOWN = [(line(), payload())]
BECOMES = {"convolution_block": SHOWN[0]}
REFUSED = [
    (line("rows"), payload(), "along: found rows, allowed filters or last"),
    (line(), DYNAMIC, r"found a convolution of memref<\?x3xf32> x .* allowed memrefs of static sizes"),
    (line(lanes=8), K_GROUPS, "found K groups with 8 lanes, allowed 16"),
]
