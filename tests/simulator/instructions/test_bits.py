from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.simulator.instructions.test_integers import expect
from tests.simulator.ptx.snippets import each_lane, lanes_of

Array = NDArray[Any]
AMOUNTS = st.lists(st.integers(0, 80), min_size=64, max_size=64).map(
    lambda amounts: np.array(amounts, np.uint32)
)


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

    found = each_lane(f"lop3.b32 %d, %a, %b, %c, {table};", a, b, c, result="u4")
    expect(found, (a, b, c), "u32", combined)


@pytest.mark.parametrize("bits", [16, 32, 64])
@settings(max_examples=3)
@given(data=st.data())
def test_shifts_beyond_the_size_move_everything_out(bits: int, data: st.DataObject) -> None:
    a, signed, n = (
        data.draw(lanes_of(f"u{bits // 8}")),
        data.draw(lanes_of(f"i{bits // 8}")),
        data.draw(AMOUNTS),
    )
    unsigned_name, signed_name = f"u{bits // 8}", f"i{bits // 8}"
    left = each_lane(f"shl.b{bits} %d, %a, %b;", a, n, result=unsigned_name)
    expect(left, (a, n), f"u{bits}", lambda x, k: x << k)
    right = each_lane(f"shr.u{bits} %d, %a, %b;", a, n, result=unsigned_name)
    expect(right, (a, n), f"u{bits}", lambda x, k: x >> k)
    right = each_lane(f"shr.s{bits} %d, %a, %b;", signed, n, result=signed_name)
    expect(right, (signed, n), f"s{bits}", lambda x, k: x >> k)


@settings(max_examples=3)
@given(a=lanes_of("u4"), b=lanes_of("u4"), n=AMOUNTS)
def test_funnel_shifts(a: Array, b: Array, n: Array) -> None:
    def both(low: int, high: int) -> int:
        return high << 32 | low

    cases = {
        "l.wrap": lambda x, y, k: both(x, y) << (k & 31) >> 32,
        "l.clamp": lambda x, y, k: both(x, y) << min(k, 32) >> 32,
        "r.wrap": lambda x, y, k: both(x, y) >> (k & 31),
        "r.clamp": lambda x, y, k: both(x, y) >> min(k, 32),
    }
    for name, function in cases.items():
        expect(each_lane(f"shf.{name}.b32 %d, %a, %b, %c;", a, b, n, result="u4"), (a, b, n), "u32", function)


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
