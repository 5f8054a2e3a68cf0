"""``tuner.bypass_l1``: which copies go around the first-level cache."""

import pytest

from tests.mlir.ops.conftest import Apply

pytestmark = pytest.mark.mlir

LINE = '"tuner.bypass_l1"(%func) : (!transform.any_op) -> ()'


def payload(dtype: str, elements: int) -> str:
    """Returns one copy of so many elements."""
    tile = f"memref<64x{dtype}, #gpu.address_space<workgroup>>"
    return f"""
module {{
  func.func @f(%a: memref<64x{dtype}>, %i: index, %n: index) {{
    %tile = memref.alloc() : {tile}
    %copy = nvgpu.device_async_copy %a[%i], %tile[%i], {elements}, %n : memref<64x{dtype}> to {tile}
    return
  }}
}}
"""


@pytest.mark.parametrize(
    ("dtype", "elements", "bypasses"),
    [("f16", 8, True), ("f16", 4, False), ("f32", 4, True), ("f32", 1, False), ("f64", 2, True)],
)
def test_copies_of_sixteen_bytes_bypass(dtype: str, elements: int, bypasses: bool, apply: Apply) -> None:
    assert ("bypassL1" in apply(LINE, payload(dtype, elements))) == bypasses


SHOWN = LINE, payload("f16", 8)
