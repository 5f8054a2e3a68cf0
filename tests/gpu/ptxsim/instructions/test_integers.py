"""Arithmetic and bits of integers."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.gpu.ptxsim.ptx.snippets import Array, each_lane, lanes_of

TYPES = ("u16", "s16", "u32", "s32", "u64", "s64")
AMOUNTS = st.lists(st.integers(0, 80), min_size=64, max_size=64).map(lambda each: np.array(each, np.uint32))


def numpy_name(type_: str) -> str:
    return f"{'i' if type_[0] == 's' else 'u'}{int(type_[1:]) // 8}"


def wrap(value: int, type_: str) -> int:
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
def test_products(type_: str, data: st.DataObject) -> None:
    dtype, bits = numpy_name(type_), int(type_[1:])
    a, b, c = (data.draw(lanes_of(dtype)) for _ in range(3))
    found = each_lane(f"mul.hi.{type_} %d, %a, %b;", a, b, result=dtype)
    expect(found, (a, b), type_, lambda x, y: x * y >> bits)
    if bits > 16:
        for part, shift in (("lo", 0), ("hi", bits)):
            found = each_lane(f"mad.{part}.{type_} %d, %a, %b, %c;", a, b, c, result=dtype)
            expect(found, (a, b, c), type_, lambda x, y, z, by=shift: (x * y >> by) + z)
    if bits < 64:
        wide = f"{type_[0]}{2 * bits}"
        c = data.draw(lanes_of(numpy_name(wide)))
        found = each_lane(f"mul.wide.{type_} %d, %a, %b;", a, b, result=numpy_name(wide))
        expect(found, (a, b), wide, lambda x, y: x * y)
        found = each_lane(f"mad.wide.{type_} %d, %a, %b, %c;", a, b, c, result=numpy_name(wide))
        expect(found, (a, b, c), wide, lambda x, y, z: x * y + z)


@pytest.mark.parametrize("type_", ["s16", "s32", "s64"])
@settings(max_examples=3)
@given(data=st.data())
def test_signs(type_: str, data: st.DataObject) -> None:
    a = data.draw(lanes_of(numpy_name(type_)))
    for name, function in (("abs", abs), ("neg", int.__neg__)):
        expect(each_lane(f"{name}.{type_} %d, %a;", a, result=numpy_name(type_)), (a,), type_, function)


@settings(max_examples=5)
@given(a=lanes_of("i4"), b=lanes_of("i4").map(lambda lanes: lanes[::-1]), c=lanes_of("i4"))
def test_saturation_and_sums_of_absolute_differences(a: Array, b: Array, c: Array) -> None:
    for name, function in (("add", int.__add__), ("sub", int.__sub__)):
        found = each_lane(f"{name}.sat.s32 %d, %a, %b;", a, b, result="i4")
        exact = [function(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
        assert found.tolist() == np.clip(exact, -(1 << 31), (1 << 31) - 1).tolist()
    found = each_lane("sad.s32 %d, %a, %b, %c;", a, b, c, result="i4")
    expect(found, (a, b, c), "s32", lambda x, y, z: z + abs(x - y))


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


def test_highest_bit_of_signed_numbers_and_its_shift_and_two_numbers_in_a_register() -> None:
    a, nothing = np.array([0, -1, 5, -6, 1 << 30], np.int32), 0xFFFFFFFF
    assert each_lane("bfind.s32 %d, %a;", a, result="u4").tolist() == [nothing, nothing, 2, 2, 30]
    assert each_lane("bfind.shiftamt.s32 %d, %a;", a, result="u4").tolist() == [nothing, nothing, 29, 29, 1]
    a, b = np.array([0x7FFF_0001, 0x0005_FFFF], np.uint32), np.array([0x0001_0002, 0x0003_0001], np.uint32)
    assert each_lane("add.s16x2 %d, %a, %b;", a, b, result="u4").tolist() == [0x8000_0003, 0x0008_0000]
    assert each_lane("max.s16x2 %d, %a, %b;", a, b, result="u4").tolist() == [0x7FFF_0002, 0x0005_0001]
    assert each_lane("min.u16x2 %d, %a, %b;", a, b, result="u4").tolist() == [0x0001_0001, 0x0003_0001]


@pytest.mark.parametrize("bits", [16, 32, 64])
@settings(max_examples=3)
@given(data=st.data())
def test_complements(bits: int, data: st.DataObject) -> None:
    dtype, type_ = f"u{bits // 8}", f"u{bits}"
    a = data.draw(lanes_of(dtype))
    expect(each_lane(f"not.b{bits} %d, %a;", a, result=dtype), (a,), type_, int.__invert__)
    expect(each_lane(f"cnot.b{bits} %d, %a;", a, result=dtype), (a,), type_, lambda x: x == 0)


@settings(max_examples=3)
@given(a=lanes_of("u4"), b=lanes_of("u4"), c=lanes_of("u4"), table=st.integers(0, 255))
def test_any_function_of_three_bits(a: Array, b: Array, c: Array, table: int) -> None:
    def combined(x: int, y: int, z: int) -> int:
        rows = [4 * (x >> i & 1) + 2 * (y >> i & 1) + (z >> i & 1) for i in range(32)]
        return sum((table >> row & 1) << i for i, row in enumerate(rows))

    expect(each_lane(f"lop3.b32 %d, %a, %b, %c, {table};", a, b, c, result="u4"), (a, b, c), "u32", combined)


@pytest.mark.parametrize("bits", [16, 32, 64])
@settings(max_examples=3)
@given(data=st.data())
def test_shifts_beyond_the_size_move_everything_out(bits: int, data: st.DataObject) -> None:
    n = data.draw(AMOUNTS)
    for name, type_ in (("shl.b", "u"), ("shr.u", "u"), ("shr.s", "s")):
        a = data.draw(lanes_of(numpy_name(f"{type_}{bits}")))
        found = each_lane(f"{name}{bits} %d, %a, %b;", a, n, result=a.dtype.str)
        expect(found, (a, n), f"{type_}{bits}", int.__lshift__ if "shl" in name else int.__rshift__)


@settings(max_examples=3)
@given(a=lanes_of("u4"), b=lanes_of("u4"), n=AMOUNTS)
def test_funnel_shifts(a: Array, b: Array, n: Array) -> None:
    for way, amount in (("wrap", lambda k: k & 31), ("clamp", lambda k: min(k, 32))):
        left = each_lane(f"shf.l.{way}.b32 %d, %a, %b, %c;", a, b, n, result="u4")
        expect(left, (a, b, n), "u32", lambda x, y, k, by=amount: (y << 32 | x) << by(k) >> 32)
        right = each_lane(f"shf.r.{way}.b32 %d, %a, %b, %c;", a, b, n, result="u4")
        expect(right, (a, b, n), "u32", lambda x, y, k, by=amount: (y << 32 | x) >> by(k))


@pytest.mark.parametrize("bits", [32, 64])
@settings(max_examples=5)
@given(data=st.data())
def test_fields_of_bits(bits: int, data: st.DataObject) -> None:
    a, base = data.draw(lanes_of(f"u{bits // 8}")), data.draw(lanes_of(f"u{bits // 8}"))
    start, size = data.draw(AMOUNTS), data.draw(AMOUNTS)

    def field(x: int, p: int, n: int) -> int:
        return x >> p & ((1 << n) - 1)

    def signed_field(x: int, p: int, n: int) -> int:
        """Bits beyond the number are copies of its sign, which is also what a field beyond it begins with."""
        sign = x >> min(p + n - 1, bits - 1) & 1 if n else 0
        found = sum((x >> p + i & 1 if p + i < bits else sign) << i for i in range(min(n, bits)))
        return found | (-1 << min(n, bits) if sign else 0)

    def inserted(x: int, y: int, p: int, n: int) -> int:
        mask = (1 << n) - 1 << p
        return y & ~mask | x << p & mask

    name = f"u{bits // 8}"
    found = each_lane(f"bfe.u{bits} %d, %a, %b, %c;", a, start, size, result=name)
    expect(found, (a, start, size), f"u{bits}", field)
    found = each_lane(f"bfe.s{bits} %d, %a, %b, %c;", a, start, size, result=name)
    expect(found, (a, start, size), f"u{bits}", signed_field)
    found = each_lane(f"bfi.b{bits} %d, %a, %b, %c, %x;", a, base, start, size, result=name)
    expect(found, (a, base, start, size), f"u{bits}", inserted)


@settings(max_examples=4)
@given(a=lanes_of("u4"), b=lanes_of("u4"), selector=lanes_of("u4"))
def test_permutations_of_bytes(a: Array, b: Array, selector: Array) -> None:
    def permuted(x: int, y: int, choices: int) -> int:
        source = x.to_bytes(4, "little") + y.to_bytes(4, "little")
        result = []
        for place in range(4):
            choice = choices >> 4 * place & 15
            byte = source[choice & 7]
            result.append((255 if byte & 128 else 0) if choice & 8 else byte)
        return int.from_bytes(bytes(result), "little")

    found = each_lane("prmt.b32 %d, %a, %b, %c;", a, b, selector, result="u4")
    expect(found, (a, b, selector), "u32", permuted)


def test_logic_of_predicates() -> None:
    a = np.arange(4, dtype=np.uint32)
    code = """setp.ge.u32 %q, %a, 2; setp.eq.u32 %s, %a, 3; and.pred %q, %q, !%s; not.pred %s, %q;
      xor.pred %q, %q, %s; selp.b32 %d, 1, 0, %q;"""
    assert each_lane(code, a, result="u4", declare=".reg .pred %q, %s;").tolist() == [1, 1, 1, 1]
