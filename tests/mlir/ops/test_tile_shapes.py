"""``tuner.drop_unit_batch`` and ``tuner.overlap_tiles``: what becomes of shapes, and that results stay."""

import numpy as np
import pytest

from tests.mlir.ops import block_runs
from tests.mlir.ops.one_op import apply
from tests.texts import text_beside

DROP_UNIT_BATCH = '"tuner.drop_unit_batch"(%func) : (!transform.any_op) -> ()'
BATCH, OF_TWO = (text_beside(__file__, name) for name in ("BATCH", "OF_TWO"))


OF_SUMS = BATCH.replace("%b: tensor<1x64x32xf32>)", "%b: tensor<1x64x32xf32>, %s: tensor<1x8x32xf32>)")
# ``tuner.overlap_tiles``: which loops it changes, and that what they compute stays.
ANY = "!transform.any_op"
OVERLAP = f'"tuner.overlap_tiles"(%func) : ({ANY}) -> ()'
CANONICALIZE = f"""transform.apply_patterns to %func {{
      transform.apply_patterns.canonicalization
      transform.apply_patterns.linalg.tiling_canonicalization
    }} : {ANY}
    transform.apply_cse to %func : {ANY}"""
TO_BUFFERS = f"%buffers = transform.bufferization.one_shot_bufferize %func : ({ANY}) -> {ANY}"


PAYLOAD = text_beside(__file__, "SHOWN_PAYLOAD")


def tiled(size: int) -> str:
    return f"""%generic = transform.structured.match ops{{["linalg.generic"]}} in %func : ({ANY}) -> {ANY}
    %tile, %loop = transform.structured.tile_using_for %generic tile_sizes [{size}]
      : ({ANY}) -> ({ANY}, {ANY})"""


def payload(extent: int) -> str:
    """Returns f(x, y): y = 2 x of ``extent`` elements."""
    return text_beside(__file__, "DOUBLED").replace("EXTENT", str(extent))


@pytest.mark.parametrize("size", [1, 5, 11, 14, 54, 55])
def test_what_the_tiles_compute_stays(size: int) -> None:
    text = apply(f"{tiled(size)}\n    {OVERLAP}\n    {CANONICALIZE}\n    {TO_BUFFERS}", payload(55))
    x, y = np.arange(55, dtype=np.float32), np.zeros(55, np.float32)
    block_runs.call(text, x, y)
    assert np.array_equal(y, 2 * x)


def test_loops_without_a_smaller_last_tile_short_ones_and_those_that_are_not_tiled_stay() -> None:
    for extent in (56, 10):
        assert apply(f"{tiled(14)}\n    {OVERLAP}", payload(extent)) == apply(tiled(14), payload(extent))
    text = PAYLOAD.replace("(-d0 + 55, 14)", "(-d0 + 55, 13)")
    assert apply(OVERLAP, text) == apply("", text)


SHOWN = [(DROP_UNIT_BATCH, BATCH), (f"{OVERLAP}\n    {CANONICALIZE}", PAYLOAD)]
BECOMES = {
    "drop_unit_batch": (DROP_UNIT_BATCH, BATCH.replace("batch_matmul ins", "batch_matmul {contraction} ins")),
    "drop_unit_batch_of_sums": (DROP_UNIT_BATCH, OF_SUMS.replace("outs(%zeros", "outs(%s")),
    "overlap_tiles": (f"{tiled(14)}\n    {OVERLAP}\n    {CANONICALIZE}", payload(55)),
}
REFUSED = [
    (DROP_UNIT_BATCH, OF_TWO, "allowed a batch of 1 and static sizes"),
    (DROP_UNIT_BATCH, OF_TWO.replace("<2x", "<?x"), "allowed a batch of 1 and static sizes"),
]
