"""``tuner.shared_layout``: swizzled and padded rows, and what it refuses."""

from collections.abc import Callable

import pytest

from tests.mlir.ops.conftest import Apply
from tuner.core.errors import CandidateError

pytestmark = pytest.mark.mlir

LINE = (
    '"tuner.shared_layout"(%func) {{swizzle = {0} : i64, pad_bytes = {1} : i64}} : (!transform.any_op) -> ()'
)


def payload(columns: int = 32, read: str = "") -> str:
    """Returns a tile of 16 x ``columns`` f16 filled by a copy and read by ldmatrix, and another by loads."""
    tile = f"memref<16x{columns}xf16, #gpu.address_space<workgroup>>"
    return f"""
module {{
  func.func @f(%a: memref<64x64xf16>, %c: memref<64x64xf16>, %i: index, %j: index) {{
    %tile = memref.alloc() : {tile}
    %other = memref.alloc() {{alignment = 64 : i64}} : {tile}
    %copy = nvgpu.device_async_copy %a[%i, %j], %tile[%i, %j], 8 {{bypassL1}} : memref<64x64xf16> to {tile}
    %fragment = nvgpu.ldmatrix %tile[%i, %j] {{numTiles = 4 : i32, transpose = false}}
      : {tile} -> vector<4x2xf16>
    %in = vector.load %a[%i, %j] : memref<64x64xf16>, vector<8xf16>
    vector.store %in, %other[%i, %j] : {tile}, vector<8xf16>
    %out = vector.load %other[%j, %i] : {tile}, vector<8xf16>
    vector.store %out, %c[%i, %j] : memref<64x64xf16>, vector<8xf16>
    {read.replace("TILE", tile)}
    return
  }}
}}
"""


@pytest.mark.parametrize(
    ("name", "swizzle", "pad", "columns"),
    [
        ("swizzled", 1, 16, 32),
        ("swizzled_long", 1, 0, 128),
        ("swizzled_odd", 1, 0, 48),
        ("padded", 0, 32, 32),
    ],
)
def test_tiles_are_rearranged(
    name: str, swizzle: int, pad: int, columns: int, apply: Apply, golden: Callable[[str, str], None]
) -> None:
    golden(f"shared_layout_{name}.mlir", apply(LINE.format(swizzle, pad), payload(columns)))


def test_a_use_that_is_not_by_index_is_refused(apply: Apply) -> None:
    view = "memref.copy %tile, %other : TILE to TILE"
    with pytest.raises(CandidateError, match=r"found memref\.copy of shared memory, allowed memref\.load"):
        apply(LINE.format(1, 16), payload(read=view))


@pytest.mark.parametrize("pad", [-16, 8])
def test_a_padding_that_breaks_alignment_is_refused(pad: int, apply: Apply) -> None:
    with pytest.raises(CandidateError, match=f"pad_bytes: found {pad}, allowed a multiple of 16"):
        apply(LINE.format(1, pad), payload())


@pytest.mark.parametrize("columns", [16, 32, 64, 128])
def test_eight_rows_of_a_swizzled_tile_lie_in_eight_groups_of_banks(columns: int) -> None:
    row_bytes = 2 * columns
    rows_of_banks, vectors = max(1, 128 // row_bytes), min(8, row_bytes // 16)
    for vector in range(vectors):
        groups = {
            (row * row_bytes // 16 + (vector ^ (row // rows_of_banks % vectors))) % 8 for row in range(8)
        }
        assert len(groups) == 8
