"""``tuner.use_tf32``: products of f32 are marked."""

import pytest

from tests.mlir.ops.conftest import Apply
from tests.texts import text_beside

pytestmark = pytest.mark.mlir

LINE = '"tuner.use_tf32"(%func) : (!transform.any_op) -> ()'


PAYLOAD = text_beside(__file__, "PAYLOAD")


def payload(a: str, b: str, shape: str) -> str:
    return PAYLOAD.replace("OF_A", a).replace("OF_B", b).replace("SHAPE", shape)


def test_products_of_f32_are_marked(apply: Apply) -> None:
    text = apply(LINE, payload("vector<4x1xf32>", "vector<2x1xf32>", "16, 8, 8"))
    assert text.count("tf32Enabled") == 1


SHOWN = LINE, payload("vector<4x1xf32>", "vector<2x1xf32>", "16, 8, 8")
REFUSED = [
    (
        LINE,
        payload("vector<4x2xf16>", "vector<2x2xf16>", "16, 8, 16"),
        r"found no nvgpu\.mma\.sync of f32 operands",
    ),
]
