"""``tuner.drop_unit_batch``: a batch of one pair of matrices becomes a matmul, with its attributes."""

from collections.abc import Callable

import pytest

from tests.mlir.ops.conftest import Apply
from tests.texts import text_beside
from tuner.core.errors import CandidateError, Stage

pytestmark = pytest.mark.mlir

LINE = '"tuner.drop_unit_batch"(%func) : (!transform.any_op) -> ()'
PAYLOAD = text_beside(__file__, "PAYLOAD")


def test_a_batch_of_one_becomes_a_matmul(apply: Apply, golden: Callable[[str, str], None]) -> None:
    payload = PAYLOAD.replace("batch_matmul ins", "batch_matmul {contraction} ins")
    text = apply(LINE, payload)
    assert "linalg.matmul {contraction}" in text
    golden("drop_unit_batch.mlir", text)


def test_sums_that_begin_with_other_numbers_are_sliced(apply: Apply) -> None:
    payload = PAYLOAD.replace("%b: tensor<1x64x32xf32>)", "%b: tensor<1x64x32xf32>, %s: tensor<1x8x32xf32>)")
    text = apply(LINE, payload.replace("outs(%zeros", "outs(%s"))
    assert "tensor<1x8x32xf32> to tensor<8x32xf32>" in text


@pytest.mark.parametrize("batch", ["2", "?"])
def test_a_batch_of_more_is_refused(batch: str, apply: Apply) -> None:
    payload = f"""
func.func @f(%a: tensor<{batch}x8x64xf32>, %b: tensor<{batch}x64x32xf32>, %c: tensor<{batch}x8x32xf32>)
    -> tensor<{batch}x8x32xf32> {{
  %0 = linalg.batch_matmul ins(%a, %b : tensor<{batch}x8x64xf32>, tensor<{batch}x64x32xf32>)
    outs(%c : tensor<{batch}x8x32xf32>) -> tensor<{batch}x8x32xf32>
  return %0 : tensor<{batch}x8x32xf32>
}}"""
    with pytest.raises(CandidateError, match="allowed a batch of 1 and static sizes") as caught:
        apply(LINE, payload)
    assert caught.value.stage is Stage.COMPILE
