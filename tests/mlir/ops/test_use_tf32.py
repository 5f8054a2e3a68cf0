"""``tuner.use_tf32``: products of f32 are marked."""

import pytest

from tests.mlir.ops.conftest import Apply

pytestmark = pytest.mark.mlir

LINE = '"tuner.use_tf32"(%func) : (!transform.any_op) -> ()'


def payload(a: str, b: str, shape: str) -> str:
    types = f"({a}, {b}, vector<2x2xf32>) -> vector<2x2xf32>"
    return f"""
module {{
  func.func @f(%a: {a}, %b: {b}, %c: vector<2x2xf32>) -> vector<2x2xf32> {{
    %d = nvgpu.mma.sync(%a, %b, %c) {{mmaShape = [{shape}]}} : {types}
    return %d : vector<2x2xf32>
  }}
}}
"""


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
