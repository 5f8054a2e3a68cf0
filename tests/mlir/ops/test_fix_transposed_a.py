"""``tuner.fix_transposed_a``: which loads get other lane addresses."""

import pytest

from tests.mlir.ops.conftest import Apply

pytestmark = pytest.mark.mlir

LINE = '"tuner.fix_transposed_a"(%func) : (!transform.any_op) -> ()'


def payload(tiles: int, transpose: str) -> str:
    tile, vector = "memref<64x64xf16, #gpu.address_space<workgroup>>", f"vector<{tiles}x2xf16>"
    return f"""
module {{
  func.func @f(%i: index, %j: index) -> {vector} {{
    %tile = memref.alloc() : {tile}
    %a = nvgpu.ldmatrix %tile[%i, %j] {{numTiles = {tiles} : i32, transpose = {transpose}}}
      : {tile} -> {vector}
    return %a : {vector}
  }}
}}
"""


@pytest.mark.parametrize(("tiles", "transpose"), [(4, "false"), (2, "true")])
def test_other_loads_are_left_alone(tiles: int, transpose: str, apply: Apply) -> None:
    assert "gpu.lane_id" not in apply(LINE, payload(tiles, transpose))


SHOWN = LINE, payload(4, "true")
BECOMES = {
    "fix_transposed_a": (LINE, payload(4, "true")),
}
