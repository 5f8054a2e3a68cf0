"""``tuner.shared_layout``: swizzled and padded rows, and what it refuses."""

import pytest

from tests.mlir.ops.one_op import apply
from tests.texts import filled, text_beside

KNOBS = "{{swizzle = {0} : i64, pad_bytes = {1} : i64}}"
LINE = f'"tuner.shared_layout"(%func) {KNOBS} : (!transform.any_op) -> ()'
TILE = "memref<16x32xf16, #gpu.address_space<workgroup>>"


def payload(columns: int = 32, read: str = "") -> str:
    """Returns a tile of 16 x ``columns`` f16 filled by a copy and read by ldmatrix, and another by loads."""
    return text_beside(__file__, "PAYLOAD").replace("READ", read).replace("COLUMNS", str(columns))


@pytest.mark.parametrize(
    ("rows", "columns", "expected"),
    [(64, 128, "32x272xi8"), (64, 32, "16x144xi8"), (64, 64, "32x144xi8"), (64, 256, "32x528xi8")],
)
def test_single_bytes_of_four_rows_do_not_share_banks_with_those_eight_rows_on(
    rows: int, columns: int, expected: str
) -> None:
    tile = f"memref<{rows}x{columns}xi8, #gpu.address_space<workgroup>>"
    code = filled(__file__, "BYTES", tile=tile)
    assert f"memref<{expected}, #gpu.address_space<workgroup>>" in apply(LINE.format(1, 16), code)
    row_bytes, together = int(expected.split("x")[1]), rows // int(expected.split("x")[0])
    starts = [4 * lane // together * row_bytes + 4 * lane % together * columns for lane in range(4)]
    banks = [start // 4 % 32 + word for start in starts for word in (0, 1)]  # eight bytes of each row
    assert len(set(banks)) == len(banks)


BECOMES = {
    "shared_layout_swizzled": (LINE.format(1, 16), payload(32)),
    "shared_layout_swizzled_long": (LINE.format(1, 0), payload(128)),
    "shared_layout_swizzled_odd": (LINE.format(1, 0), payload(48)),
    "shared_layout_padded": (LINE.format(0, 32), payload(32)),
}
COPIED = payload(read=f"memref.copy %tile, %other : {TILE} to {TILE}")
REFUSED = [
    (LINE.format(1, 16), COPIED, r"found memref\.copy of shared memory, allowed memref\.load"),
    (LINE.format(1, -16), payload(), "pad_bytes: found -16, allowed a multiple of 16"),
    (LINE.format(1, 8), payload(), "pad_bytes: found 8, allowed a multiple of 16"),
]
