"""``tuner.drop_unit_batch``: a batch of one pair of matrices becomes a matmul, with its attributes."""

import pytest

from tests.mlir.ops.conftest import Apply
from tests.texts import text_beside

pytestmark = pytest.mark.mlir

LINE = '"tuner.drop_unit_batch"(%func) : (!transform.any_op) -> ()'
PAYLOAD, OF_TWO = (text_beside(__file__, name) for name in ("PAYLOAD", "OF_TWO"))


def test_sums_that_begin_with_other_numbers_are_sliced(apply: Apply) -> None:
    payload = PAYLOAD.replace("%b: tensor<1x64x32xf32>)", "%b: tensor<1x64x32xf32>, %s: tensor<1x8x32xf32>)")
    text = apply(LINE, payload.replace("outs(%zeros", "outs(%s"))
    assert "tensor<1x8x32xf32> to tensor<8x32xf32>" in text


SHOWN = LINE, PAYLOAD
BECOMES = {
    "drop_unit_batch": (LINE, PAYLOAD.replace("batch_matmul ins", "batch_matmul {contraction} ins")),
}
REFUSED = [
    (LINE, OF_TWO, "allowed a batch of 1 and static sizes"),
    (LINE, OF_TWO.replace("<2x", "<?x"), "allowed a batch of 1 and static sizes"),
]
