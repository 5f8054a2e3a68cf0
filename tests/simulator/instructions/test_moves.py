from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray

from tests.simulator.ptx.snippets import each_lane, lanes_of, run

Array = NDArray[Any]


@settings(max_examples=3)
@given(a=lanes_of("u8"))
def test_registers_are_cut_into_parts_and_joined(a: Array) -> None:
    declare = ".reg .b32 %l, %h; .reg .b16 %q<4>;"
    swap = "mov.b64 {%l, %h}, %a; mov.b64 %d, {%h, %l};"
    np.testing.assert_array_equal(each_lane(swap, a, result="u8", declare=declare), a << 32 | a >> 32)
    reverse = "mov.b64 {%q0, %q1, %q2, %q3}, %a; mov.b64 %d, {%q3, %q2, %q1, %q0};"
    expected = a.view(np.uint16).reshape(-1, 4)[:, ::-1].copy().view(np.uint64)[:, 0]
    np.testing.assert_array_equal(each_lane(reverse, a, result="u8", declare=declare), expected)
    high = "mov.b64 {_, %d}, %a;"
    np.testing.assert_array_equal(each_lane(high, a, result="u4"), a >> 32)


@pytest.mark.parametrize(
    ("text", "value"),
    [("0f3FC00000", 1.5), ("0xFF", 255), ("-1", -1), ("017", 15), ("0b101", 5), ("1.5", 1.5)],
)
def test_numbers_in_the_text(text: str, value: float) -> None:
    dtype = "f4" if "f3" in text or "." in text else "i4"
    type_ = "f32" if dtype == "f4" else "s32"
    assert each_lane(f"mov.{type_} %d, {text};", np.zeros(2, "u4"), result=dtype).tolist() == [value] * 2


def test_special_registers_report_the_thread() -> None:
    out = np.zeros((2, 3, 40, 5), np.uint32)
    names = ("tid.x", "ntid.x", "ctaid.y", "laneid", "warpid")
    stores = "".join(
        f"mov.u32 %r{i}, %{name}; st.global.u32 [%rd1+{4 * i}], %r{i};" for i, name in enumerate(names)
    )
    code = f"""mov.u32 %r6, %ctaid.y; mov.u32 %r7, %nctaid.x; mad.lo.u32 %r6, %r6, %r7, %b;
      mad.lo.u32 %r6, %r6, 40, %t; mul.wide.u32 %rd1, %r6, 20; add.s64 %rd1, %rd1, %p0; {stores}"""
    run(code, out, threads=40, grid=(3, 2, 1))
    for block in np.ndindex(2, 3):
        for thread in range(40):
            assert out[block][thread].tolist() == [thread, 40, block[0], thread % 32, thread // 32]


def test_masks_of_lanes() -> None:
    found = [
        each_lane(f"mov.u32 %d, %lanemask_{name};", np.zeros(32, "u4"), result="u4")[5]
        for name in ("eq", "lt", "le", "gt", "ge")
    ]
    assert found == [0x20, 0x1F, 0x3F, 0xFFFFFFC0, 0xFFFFFFE0]


def test_a_register_that_nothing_has_written_is_nan() -> None:
    assert np.isnan(
        each_lane("add.f32 %d, %u, 0f3F800000;", np.zeros(2, "u4"), result="f4", declare=".reg .f32 %u;")
    ).all()
