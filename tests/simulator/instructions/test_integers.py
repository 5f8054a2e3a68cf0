from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.simulator.ptx.snippets import each_lane, lanes_of

Array = NDArray[Any]
TYPES = ("u16", "s16", "u32", "s32", "u64", "s64")


def numpy_name(type_: str) -> str:
    return f"{'i' if type_[0] == 's' else 'u'}{int(type_[1:]) // 8}"


def wrap(value: int, type_: str) -> int:
    """Returns an integer modulo the type's range."""
    bits = int(type_[1:])
    value &= (1 << bits) - 1
    return value - (1 << bits) if type_[0] == "s" and value >> (bits - 1) else value


def expect(found: Array, inputs: tuple[Array, ...], type_: str, function: Callable[..., int]) -> None:
    rows = zip(*(array.tolist() for array in inputs), strict=True)
    assert found.tolist() == [wrap(function(*row), type_) for row in rows]


@pytest.mark.parametrize("type_", TYPES)
def test_a_division_by_zero_gives_all_ones_and_leaves_the_dividend(type_: str) -> None:
    a = np.array([7, 1, 0], numpy_name(type_))
    found = each_lane(f"div.{type_} %d, %a, %b;", a, a * 0, result=a.dtype.str)
    assert found.tolist() == [wrap(-1, type_)] * 3
    assert each_lane(f"rem.{type_} %d, %a, %b;", a, a * 0, result=a.dtype.str).tolist() == a.tolist()


@pytest.mark.parametrize("type_", TYPES)
@settings(max_examples=4)
@given(data=st.data())
def test_the_high_half_of_a_product(type_: str, data: st.DataObject) -> None:
    dtype, bits = numpy_name(type_), int(type_[1:])
    a, b = data.draw(lanes_of(dtype)), data.draw(lanes_of(dtype))[::-1]
    found = each_lane(f"mul.hi.{type_} %d, %a, %b;", a, b, result=dtype)
    expect(found, (a, b), type_, lambda x, y: x * y >> bits)


@pytest.mark.parametrize("type_", ["u16", "s16", "u32", "s32"])
@settings(max_examples=4)
@given(data=st.data())
def test_wide_products(type_: str, data: st.DataObject) -> None:
    dtype, wide = numpy_name(type_), f"{type_[0]}{2 * int(type_[1:])}"
    a, b, c = (data.draw(lanes_of(name)) for name in (dtype, dtype, numpy_name(wide)))
    found = each_lane(f"mul.wide.{type_} %d, %a, %b;", a, b, result=numpy_name(wide))
    expect(found, (a, b), wide, lambda x, y: x * y)
    found = each_lane(f"mad.wide.{type_} %d, %a, %b, %c;", a, b, c, result=numpy_name(wide))
    expect(found, (a, b, c), wide, lambda x, y, z: x * y + z)


@pytest.mark.parametrize("type_", ["u32", "s32", "u64", "s64"])
@pytest.mark.parametrize(("part", "shift"), [("lo", 0), ("hi", 1)])
@settings(max_examples=3)
@given(data=st.data())
def test_multiply_add(type_: str, part: str, shift: int, data: st.DataObject) -> None:
    dtype, bits = numpy_name(type_), int(type_[1:])
    a, b, c = (data.draw(lanes_of(dtype)) for _ in range(3))
    found = each_lane(f"mad.{part}.{type_} %d, %a, %b, %c;", a, b, c, result=dtype)
    expect(found, (a, b, c), type_, lambda x, y, z: (x * y >> bits * shift) + z)


@pytest.mark.parametrize("name", ["abs", "neg"])
@pytest.mark.parametrize("type_", ["s16", "s32", "s64"])
@settings(max_examples=3)
@given(data=st.data())
def test_signs(name: str, type_: str, data: st.DataObject) -> None:
    a = data.draw(lanes_of(numpy_name(type_)))
    found = each_lane(f"{name}.{type_} %d, %a;", a, result=numpy_name(type_))
    expect(found, (a,), type_, abs if name == "abs" else int.__neg__)


@pytest.mark.parametrize("name", ["add", "sub"])
@settings(max_examples=5)
@given(data=st.data())
def test_saturation(name: str, data: st.DataObject) -> None:
    a, b = data.draw(lanes_of("i4")), data.draw(lanes_of("i4"))[::-1]
    found = each_lane(f"{name}.sat.s32 %d, %a, %b;", a, b, result="i4")
    expect(
        found,
        (a, b),
        "s32",
        lambda x, y: max(-(1 << 31), min((1 << 31) - 1, x + y if name == "add" else x - y)),
    )


@pytest.mark.parametrize("bits", [32, 64])
@settings(max_examples=4)
@given(data=st.data())
def test_counts_of_bits(bits: int, data: st.DataObject) -> None:
    a = data.draw(lanes_of(f"u{bits // 8}"))
    expect(each_lane(f"popc.b{bits} %d, %a;", a, result="u4"), (a,), "u32", int.bit_count)
    expect(each_lane(f"clz.b{bits} %d, %a;", a, result="u4"), (a,), "u32", lambda x: bits - x.bit_length())
    expect(each_lane(f"bfind.u{bits} %d, %a;", a, result="u4"), (a,), "u32", lambda x: x.bit_length() - 1)
    reverse = each_lane(f"brev.b{bits} %d, %a;", a, result=f"u{bits // 8}")
    expect(reverse, (a,), f"u{bits}", lambda x: int(f"{x:0{bits}b}"[::-1], 2))


@settings(max_examples=4)
@given(a=lanes_of("i4"), b=lanes_of("i4"), c=lanes_of("i4"))
def test_sum_of_absolute_differences(a: Array, b: Array, c: Array) -> None:
    found = each_lane("sad.s32 %d, %a, %b, %c;", a, b[::-1], c, result="i4")
    expect(found, (a, b[::-1], c), "s32", lambda x, y, z: z + abs(x - y))


def test_highest_bit_of_signed_numbers_and_its_shift() -> None:
    a = np.array([0, -1, 5, -6, 1 << 30], np.int32)
    nothing = 0xFFFFFFFF
    assert each_lane("bfind.s32 %d, %a;", a, result="u4").tolist() == [nothing, nothing, 2, 2, 30]
    assert each_lane("bfind.shiftamt.s32 %d, %a;", a, result="u4").tolist() == [nothing, nothing, 29, 29, 1]


def test_two_numbers_in_a_register() -> None:
    a, b = np.array([0x7FFF_0001, 0x0005_FFFF], np.uint32), np.array([0x0001_0002, 0x0003_0001], np.uint32)
    assert each_lane("add.s16x2 %d, %a, %b;", a, b, result="u4").tolist() == [0x8000_0003, 0x0008_0000]
    assert each_lane("max.s16x2 %d, %a, %b;", a, b, result="u4").tolist() == [0x7FFF_0002, 0x0005_0001]
    assert each_lane("min.u16x2 %d, %a, %b;", a, b, result="u4").tolist() == [0x0001_0001, 0x0003_0001]
