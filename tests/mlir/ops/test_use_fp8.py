"""``tuner.use_fp8``: products of bytes become inline PTX of 8-bit floats."""

from collections.abc import Callable

import pytest

from tests.mlir.ops.conftest import Apply
from tuner.core.errors import CandidateError

pytestmark = pytest.mark.mlir

LINE = '"tuner.use_fp8"(%func) {{kind = "{0}"}} : (!transform.any_op) -> ()'


def payload(
    a: str = "vector<4x4xi8>", b: str = "vector<2x4xi8>", shape: str = "16, 8, 32", c: str = "f32"
) -> str:
    sums = f"vector<2x2x{c}>"
    return f"""
module {{
  func.func @f(%a: {a}, %b: {b}, %c: {sums}) -> {sums} {{
    %d = nvgpu.mma.sync(%a, %b, %c) {{mmaShape = [{shape}]}} : ({a}, {b}, {sums}) -> {sums}
    return %d : {sums}
  }}
}}
"""


def test_a_product_becomes_the_instruction_on_its_registers(
    apply: Apply, golden: Callable[[str, str], None]
) -> None:
    golden("use_fp8.mlir", apply(LINE.format("e4m3"), payload()))


def test_both_kinds_are_spelled_as_ptx_spells_them(apply: Apply) -> None:
    assert "m16n8k32.row.col.f32.e5m2.e5m2.f32" in apply(LINE.format("e5m2"), payload())


def test_another_kind_is_refused(apply: Apply) -> None:
    with pytest.raises(CandidateError, match="kind: found 'e3m4', allowed e4m3, e5m2"):
        apply(LINE.format("e3m4"), payload())


@pytest.mark.parametrize(
    "text", [payload("vector<4x2xf16>", "vector<2x2xf16>", "16, 8, 16"), payload(c="i32")], ids=["f16", "i32"]
)
def test_a_function_without_products_of_bytes_is_refused(apply: Apply, text: str) -> None:
    with pytest.raises(CandidateError, match=r"found no nvgpu\.mma\.sync of i8 fragments and f32 sums"):
        apply(LINE.format("e4m3"), text)


def test_another_shape_is_refused(apply: Apply) -> None:
    text = payload("vector<2x4xi8>", "vector<1x4xi8>", "16, 8, 16")
    with pytest.raises(CandidateError, match=r"of \(2, 1, 4\) registers, allowed \(4, 2, 4\)"):
        apply(LINE.format("e4m3"), text)
