"""``tuner.merge_ldmatrix``: pairs of loads become one, others stay."""

import pytest

from tests.mlir.ops.conftest import Apply

pytestmark = pytest.mark.mlir

LINE = '"tuner.merge_ldmatrix"(%func) : (!transform.any_op) -> ()'


def payload(offsets: tuple[int, ...], transpose: str, dtype: str = "f16") -> str:
    """Returns loads of two tiles at these columns n of B."""
    tile = f"memref<64x64x{dtype}, #gpu.address_space<workgroup>>"
    vector = "vector<2x2xf16>" if dtype == "f16" else "vector<2x1xf32>"
    lines = []
    for number, offset in enumerate(offsets):
        at = f"affine.apply affine_map<()[s0] -> (s0 mod 8 + {offset})>()[%lane]"
        indices = "%row, %n{0}" if transpose == "true" else "%n{0}, %row"
        lines.append(
            f"%n{number} = {at}\n%b{number} = nvgpu.ldmatrix %tile[{indices.format(number)}]"
            f" {{numTiles = 2 : i32, transpose = {transpose}}} : {tile} -> {vector}\n"
            f"memref.store %b{number}, %c[%i] : memref<64x{vector}>"
        )
    body = "\n".join(lines)
    return f"""
module {{
  func.func @f(%c: memref<64x{vector}>) {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %tile = memref.alloc() : {tile}
    %lane = gpu.lane_id
    %row = affine.apply affine_map<()[s0] -> (s0 floordiv 8)>()[%lane]
    scf.for %i = %c0 to %c64 step %c1 {{
{body}
    }}
    return
  }}
}}
"""


@pytest.mark.parametrize(
    ("offsets", "loads"),
    [((0, 8, 16, 24), 2), ((0, 8, 16), 2), ((0, 16), 2), ((0, 4), 2), ((8, 0), 2), ((0,), 1)],
)
def test_each_load_is_merged_at_most_once(offsets: tuple[int, ...], loads: int, apply: Apply) -> None:
    assert apply(LINE, payload(offsets, "true")).count("nvgpu.ldmatrix") == loads


SHOWN = LINE, payload((0, 8), "true")
BECOMES = {
    "merge_ldmatrix_rows_of_k": (LINE, payload((0, 8), "true", "f16")),
    "merge_ldmatrix_rows_of_n": (LINE, payload((0, 8), "false", "f16")),
    "merge_ldmatrix_rows_of_n_tf32": (LINE, payload((0, 8), "false", "f32")),
}
