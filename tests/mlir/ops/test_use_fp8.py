"""``tuner.use_fp8``: products of bytes become inline PTX of 8-bit floats."""

import pytest

from tests.mlir.ops.conftest import Apply
from tests.texts import text_beside

pytestmark = pytest.mark.mlir

LINE = '"tuner.use_fp8"(%func) {{kind = "{0}"}} : (!transform.any_op) -> ()'


PAYLOAD = text_beside(__file__, "PAYLOAD")


def payload(
    a: str = "vector<4x4xi8>", b: str = "vector<2x4xi8>", shape: str = "16, 8, 32", c: str = "f32"
) -> str:
    return PAYLOAD.replace("OF_A", a).replace("OF_B", b).replace("SHAPE", shape).replace("SUM", c)


def test_both_kinds_are_spelled_as_ptx_spells_them(apply: Apply) -> None:
    assert "m16n8k32.row.col.f32.e5m2.e5m2.f32" in apply(LINE.format("e5m2"), payload())


SHOWN = LINE.format("e4m3"), payload()
BECOMES = {
    "use_fp8": (LINE.format("e4m3"), payload()),
}
REFUSED = [
    (LINE.format("e3m4"), payload(), "kind: found 'e3m4', allowed e4m3, e5m2"),
    (
        LINE.format("e4m3"),
        payload("vector<4x2xf16>", "vector<2x2xf16>", "16, 8, 16"),
        r"found no nvgpu\.mma\.sync of i8 fragments and f32 sums",
    ),
    (LINE.format("e4m3"), payload(c="i32"), r"found no nvgpu\.mma\.sync of i8 fragments and f32 sums"),
    (
        LINE.format("e4m3"),
        payload("vector<2x4xi8>", "vector<1x4xi8>", "16, 8, 16"),
        r"of \(2, 1, 4\) registers, allowed \(4, 2, 4\)",
    ),
]
