import operator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.simulator.ptx.snippets import each_lane

Array = NDArray[Any]
UNSIGNED = {"lo": operator.lt, "ls": operator.le, "hi": operator.gt, "hs": operator.ge}
PREDICATES = ".reg .pred %q, %s, %u;"


def holds(compare: str, a: Array, b: Array) -> Array:
    code = f"setp.{compare} %q, %a, %b; selp.b32 %d, 1, 0, %q;"
    return each_lane(code, a, b, result="u4", declare=PREDICATES)


@pytest.mark.parametrize("type_", ["u16", "u32", "u64"])
def test_other_names_of_unsigned_comparisons(type_: str) -> None:
    a, b = (np.array(each, f"u{int(type_[1:]) // 8}") for each in ([0, 1, 2, 65535], [1, 1, 1, 0]))
    for name, function in UNSIGNED.items():
        assert holds(f"{name}.{type_}", a, b).tolist() == function(a, b).tolist()


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
