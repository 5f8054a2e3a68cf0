"""``tuner.pack_weights``: which weights are read from panels, which stay as they lie."""

import pytest

from tests.mlir.ops.conftest import Apply
from tests.texts import text_beside

pytestmark = pytest.mark.mlir

LINE = '"tuner.pack_weights"(%func) {columns = 48 : i64} : (!transform.any_op) -> ()'
# C = A W in panels of 48 columns of 100; the last four are padded to 16.
PAYLOAD = text_beside(__file__, "PAYLOAD")


def test_a_whole_weight_of_one_panel_is_packed(apply: Apply) -> None:
    payload = text_beside(__file__, "ONE_PANEL")
    assert "memref<1x64x48xf32> {tuner.packing = 48 : i64, tuner.weight}" in apply(LINE, payload)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (" {tuner.weight}", ""),  # is computed anew at each call
        ("%c48 = arith.constant 48", "%c48 = arith.constant 32"),  # slices that no panel holds
        ("weight[0, 96] [64, 4]", "weight[0, 90] [64, 4]"),
        ("columns = 48", "columns = 32"),
        ("[64, 48] [1, 1]", "[64, 48] [1, 2]"),
        ("%zero = arith.constant 0.0", "%zero = arith.constant 1.0"),  # padded with other numbers
        ("return %sums", "%x = tensor.extract %weight[%c0, %c0] : tensor<64x100xf32>\n  return %sums"),
        ("low[0, 0] high[0, 12]", "low[0, 12] high[0, 0]"),
    ],
)
def test_other_weights_stay_as_they_lie(old: str, new: str, apply: Apply) -> None:
    line, payload = LINE.replace(old, new), PAYLOAD.replace(old, new)
    assert (line, payload) != (LINE, PAYLOAD)
    assert "tuner.packing" not in apply(line, payload)


def test_a_weight_is_packed_once(apply: Apply) -> None:
    assert apply(f"{LINE}\n    {LINE}", PAYLOAD) == apply(LINE, PAYLOAD)


SHOWN = LINE, PAYLOAD
BECOMES = {
    "pack_weights": (LINE, PAYLOAD),
}
REFUSED = [
    (LINE.replace("48", "0"), PAYLOAD, "columns: found 0, allowed 1 and more"),
    (LINE.replace("%func", "%root"), PAYLOAD, "target: found builtin.module, allowed func.func with a body"),
]
