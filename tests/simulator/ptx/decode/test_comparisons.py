import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.simulator.ptx.snippets import each_lane, lanes_of

Array = NDArray[Any]
ORDERED: dict[str, Callable[[Any, Any], bool]] = {
    name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")
}
UNSIGNED = {"lo": operator.lt, "ls": operator.le, "hi": operator.gt, "hs": operator.ge}
PREDICATES = ".reg .pred %q, %s, %u;"


def holds(compare: str, a: Array, b: Array) -> Array:
    code = f"setp.{compare} %q, %a, %b; selp.b32 %d, 1, 0, %q;"
    return each_lane(code, a, b, result="u4", declare=PREDICATES)


@pytest.mark.parametrize("type_", ["u16", "s16", "u32", "s32", "u64", "s64"])
@settings(max_examples=2)
@given(data=st.data())
def test_integers(type_: str, data: st.DataObject) -> None:
    dtype = f"{'i' if type_[0] == 's' else 'u'}{int(type_[1:]) // 8}"
    a = data.draw(lanes_of(dtype))
    b = np.where(np.arange(len(a)) % 2, a, np.roll(a, 1))
    names = ORDERED | (UNSIGNED if type_[0] == "u" else {})
    for name, function in names.items():
        expected = [function(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
        assert holds(f"{name}.{type_}", a, b).tolist() == expected


@pytest.mark.drawn(2)
@pytest.mark.parametrize("type_", ["f16", "f32", "f64"])
@settings(max_examples=2)
@given(data=st.data())
def test_floats_with_nan(type_: str, data: st.DataObject) -> None:
    a = data.draw(lanes_of(f"f{int(type_[1:]) // 8}"))
    b = np.where(np.arange(len(a)) % 2, a, np.roll(a, 1))
    pairs = [(float(x), float(y)) for x, y in zip(a, b, strict=True)]
    nan = [math.isnan(x) or math.isnan(y) for x, y in pairs]
    for name, function in ORDERED.items():
        plain = [function(x, y) and not unordered for (x, y), unordered in zip(pairs, nan, strict=True)]
        assert holds(f"{name}.{type_}", a, b).tolist() == plain
        either = [function(x, y) or unordered for (x, y), unordered in zip(pairs, nan, strict=True)]
        assert holds(f"{name}u.{type_}", a, b).tolist() == either
    assert holds(f"num.{type_}", a, b).tolist() == [not unordered for unordered in nan]
    assert holds(f"nan.{type_}", a, b).tolist() == nan


@pytest.mark.parametrize(("word", "function"), [("and", "__and__"), ("or", "__or__"), ("xor", "__xor__")])
def test_a_combination_applies_to_both_results(word: str, function: str) -> None:
    a = np.arange(8, dtype=np.uint32)
    third = (a & 1).astype(bool)
    code = f"""setp.eq.b32 %u, %b, 1; setp.lt.{word}.u32 %q|%s, %a, 4, %u;
      selp.b32 %d, 1, 0, %q; selp.b32 %c, 2, 0, %s; add.u32 %d, %d, %c;"""
    found = each_lane(code, a, a & 1, result="u4", declare=f"{PREDICATES} .reg .b32 %c;")
    less = a < 4
    assert (found & 1 == 1).tolist() == getattr(less, function)(third).tolist()
    assert (found & 2 == 2).tolist() == getattr(~less, function)(third).tolist()


def test_packed_halves_give_a_predicate_each() -> None:
    a, b = np.array([1, 5, 7, 0], np.float16), np.array([2, 4, 7, 1], np.float16)
    code = "setp.lt.f16x2 %q|%s, %a, %b; selp.b32 %d, 1, 0, %q; selp.b32 %c, 2, 0, %s; add.u32 %d, %d, %c;"
    declare = f"{PREDICATES} .reg .b32 %c;"
    found = each_lane(code, a.view(np.uint32), b.view(np.uint32), result="u4", declare=declare)
    assert found.tolist() == [1, 2]


def test_values_instead_of_predicates() -> None:
    a = np.array([1, 2, 3], np.int32)
    assert each_lane("set.ge.u32.s32 %d, %a, 2;", a, result="u4").tolist() == [0, 0xFFFFFFFF, 0xFFFFFFFF]
    assert each_lane("set.ge.f32.s32 %d, %a, 2;", a, result="f4").tolist() == [0, 1, 1]
    signs = np.array([-1, 0, 1], np.int32)
    assert each_lane("slct.b32.s32 %d, %a, 9, %b;", a, signs, result="u4").tolist() == [9, 2, 3]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("finite", [1, 1, 0, 0, 1]),
        ("infinite", [0, 0, 1, 0, 0]),
        ("number", [1, 1, 1, 0, 1]),
        ("notanumber", [0, 0, 0, 1, 0]),
        ("normal", [1, 1, 0, 0, 0]),
        ("subnormal", [0, 0, 0, 0, 1]),
    ],
)
def test_properties_of_floats(name: str, expected: list[int]) -> None:
    a = np.array([0, -1.5, np.inf, np.nan, 1e-40], np.float32)
    code = f"testp.{name}.f32 %q, %a; selp.b32 %d, 1, 0, %q;"
    assert each_lane(code, a, result="u4", declare=PREDICATES).tolist() == expected
