"""Expressions of a search-space file, and the partial arithmetic that evaluates them."""

import pickle
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.default_suite import ALL
from tuner.core.errors import UsageError
from tuner.space import partial_arithmetic
from tuner.space.expressions import parse
from tuner.space.partial_arithmetic import Partial

NAMES = ("a", "b", "c")
SMALL = st.integers(-20, 20)


def value(text: str, **values: object) -> object:
    return parse(text, "f.yaml: c[0]").evaluate(values)  # type: ignore[arg-type]


OF_ONE = ("abs({})", "(-{})", "(not {})", "({} ** 3)", "({} in (1, -2, 3))", "({} not in (0, 5))")
OF_TWO = (
    *(f"({{}} {sign} {{}})" for sign in ("+", "-", "*", "//", "%")),
    *("bool({} and {})", "bool({} or {})", "min({}, {})", "max({}, {})"),
)
OF_THREE = (
    *(f"({{}} {sign} {{}} {sign} {{}})" for sign in ("<", "<=", "==", "!=", ">", ">=")),
    "({} if {} else {})",
)


def grow(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds(str.format, st.sampled_from(OF_ONE), parts),
        st.builds(str.format, st.sampled_from(OF_TWO), parts, parts),
        st.builds(str.format, st.sampled_from(OF_THREE), parts, parts, parts),
    )


TEXTS = st.recursive(st.one_of(st.sampled_from(NAMES), SMALL.map(str)), grow, max_leaves=6)


@given(TEXTS, st.lists(st.tuples(SMALL, SMALL, SMALL), min_size=1, max_size=8))
def test_an_expression_means_what_it_means_in_python(text: str, points: list[tuple[int, int, int]]) -> None:
    # "and" and "or" give truths here: Python's are wrapped in bool() for the comparison
    expression = parse(text.replace("bool(", "("), "here")
    columns = {name: np.array(values) for name, values in zip(NAMES, zip(*points, strict=True), strict=True)}
    column = np.broadcast_to(np.asarray(expression.evaluate(columns)), len(points))
    for point, found in zip(points, column, strict=True):
        values = dict(zip(NAMES, point, strict=True))
        try:
            wanted = eval(text, {}, values)
        except ZeroDivisionError:
            continue
        assert found == wanted
        assert expression.evaluate(values) == wanted


@pytest.mark.parametrize(
    "text", ["k % b == 0", "k // b > 0", "k / b > 0", "not (k % b == 1)", "ceil_div(k, b) > 0"]
)
def test_a_constraint_does_not_hold_where_it_divides_by_zero(text: str) -> None:
    assert value(text, k=12, b=0) is False
    assert np.array_equal(value(text, k=12, b=np.array([0, 4])), [False, True])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("b == 0 or k % b == 0", [True, False, True]),
        ("k % b == 0 or b == 0", [True, False, True]),
        ("b != 0 and k % b == 0", [False, False, True]),
        ("not (b != 0 and k % b != 0)", [True, False, True]),
        ("(k % b if b else 0) == 0", [True, False, True]),
        ("k % b == 0 or k % b != 0", [False, True, True]),
        ("k % b in (0, 7)", [False, False, True]),
        ("min(k % b, 0) == 0", [False, True, True]),
        ("0 <= k % b < 1", [False, False, True]),
        ("k % b", [0, 2, 0]),
    ],
)
def test_a_guard_decides_where_a_division_by_zero_would(text: str, wanted: list[object]) -> None:
    assert np.array_equal(value(text, k=12, b=np.array([0, 5, 6])), wanted)  # type: ignore[arg-type]
    assert [value(text, k=12, b=b) for b in (0, 5, 6)] == wanted


@given(st.integers(1, 10**6), st.integers(1, 10**4))
def test_ceil_div_rounds_up(a: int, b: int) -> None:
    assert value("ceil_div(a, b)", a=a, b=b) == -(-a // b)
    assert value("ceil_div(a, b)", a=np.array([a]), b=b) == [-(-a // b)]


@given(st.lists(st.integers(0, 2**31), min_size=1), st.integers(1, 2**31))
def test_integers_wider_than_a_machine_word_stay_exact(numbers: list[int], m: int) -> None:
    column = value("m * m * a * a - 1 < m ** 4 // 3", a=np.array(numbers), m=m)
    assert list(column) == [m * m * a * a - 1 < m**4 // 3 for a in numbers]  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("o == 'mn'", [True, False, False]),
        ("o != 'mn'", [False, True, True]),
        ("o in ('mn', 'kk')", [True, False, True]),
        ("layout not in ('nn',)", [True] * 3),
        ("('a' if x else 'b') == 'a'", [False, True, True]),
    ],
)
def test_texts_compare_by_equality_and_membership(text: str, wanted: list[bool]) -> None:
    column = value(text, o=np.array(["mn", "nm", "kk"]), layout="nt", x=np.array([0, 1, 2]))
    assert np.array_equal(np.broadcast_to(np.asarray(column), 3), wanted)


@pytest.mark.parametrize(
    "text",
    [
        *("o < 'x'", "o + 1 > 0", "o == 1", "o in (1, 2)", "-o", "abs(o)"),
        *("o and x", "not o", "min(o, 'a')", "o if x else 1"),
    ],
)
def test_a_text_where_only_numbers_make_sense_is_reported(text: str) -> None:
    for o in ("mn", np.array(["mn", "nm"])):
        message = rf"f\.yaml: c\[0\]: {re.escape(repr(text))}: .*text.*; arithmetic is for"
        with pytest.raises(UsageError, match=message):
            value(text, o=o, x=1)


def test_a_name_is_looked_up_among_the_values_and_nowhere_else() -> None:
    message = r"f\.yaml: c\[0\]: 'tile_q < m': unknown name 'tile_q', known: m, n"
    with pytest.raises(UsageError, match=message):
        value("tile_q < m", m=1, n=2)
    with pytest.raises(UsageError, match="unknown name 'print', known: m"):
        value("print == 1", m=1)
    assert value("print == 1", print=1) is True
    assert parse("min(a, min) + abs(b) > ceil_div(m, a)", "f").names == {"a", "b", "m", "min"}


OUTSIDE = [
    *("__import__('os')", "__import__('os').system('ls')", "eval('1')", "open('x')", "(min)(a, b)(c)"),
    *("min(*a)", "min(a, key=b)", "min(a)", "abs(a, b)", "ceil_div(a)"),
    *("a.b", "().__class__.__bases__", "a[0]", "lambda: 1", "(a := 1)", "await a", "f'{a}'"),
    *("[x for x in (1, 2)]", "{x for x in (1, 2)}", "(x for x in (1, 2))", "(1, 2)", "[1]", "{1: 2}"),
    *("a is b", "a in b", "a in ()", "a in (b, c)", "a in (1, 2) < 3"),
    *("a @ b", "a & b", "a << 1000000000", "~a"),
    *("2 ** a", "2 ** 17", "2 ** -1", "2 ** 2.5", "2 ** True", "9 ** 9 ** 9 ** 9"),
    *("True", "None", "...", "b'x'", "1j", "1e999"),
]
NONE = ["", "a b", "a <", "a = 1", "a; b", "import os", "1or 2", "'\\d'", "a\0", "(" * 300, "\\"]
DEEP = ["-" * 900 + "1", "not " * 240 + "a", "a+" * 400 + "a", "a if b else " * 80 + "a"]


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        *((text, r"f\.yaml: found .*, allowed names, numbers, 'text', \+ - \*") for text in OUTSIDE),
        *((text, r"f\.yaml: .* is not an expression \(.*\), allowed") for text in NONE),
        *((text, "nested deeper, allowed 40 levels|not an expression") for text in DEEP),
        ("a" * 1001, "found an expression of 1001 characters, allowed 1000"),
    ],
)
def test_anything_outside_the_whitelist_or_long_or_deep_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse(text, "f.yaml")


@pytest.mark.parametrize("text", ["((a ** 16) ** 16) ** 16 > 0", "a ** 16 * a ** 16 * 1.5 > 0"])
def test_a_number_that_would_fill_the_memory_is_refused(text: str) -> None:
    for a in (2**60, np.array([2**60])):
        with pytest.raises(UsageError, match=r": .*; arithmetic is for numbers below 2\*\*1024"):
            value(text, a=a)


def test_equal_texts_are_equal_wherever_they_stand_and_cross_process_borders() -> None:
    assert parse(" a\n  < 3 ", "f").text == "a < 3"
    assert parse("a < 3", "f") == parse("a  < 3", "g")
    assert len({parse("a < 3", "f"), parse("a < 3", "g"), parse("a < 4", "f")}) == 2
    assert pickle.loads(pickle.dumps(parse("a < 3", "f"))).evaluate({"a": 2}) is True


UNDEFINED = Partial(True, True)
TRUTHS = {"true": Partial(True), "false": Partial(False), "undefined": UNDEFINED}


def truth(part: Partial) -> str:
    return "undefined" if part.undefined else str(bool(part.value)).lower()


@pytest.mark.parametrize("left", TRUTHS)
@pytest.mark.parametrize("right", TRUTHS)
def test_truth_is_kleenes_whichever_side_comes_first(left: str, right: str) -> None:
    order = ["false", "undefined", "true"]
    both = [TRUTHS[left], TRUTHS[right]]
    assert truth(partial_arithmetic.all_of(both)) == min(left, right, key=order.index)
    assert truth(partial_arithmetic.any_of(both)) == max(left, right, key=order.index)
    assert truth(partial_arithmetic.negate(TRUTHS[left])) == order[2 - order.index(left)]


@pytest.mark.parametrize("sign", ["/", "//", "%"])
def test_a_zero_divisor_leaves_its_point_undefined_and_the_others_alone(sign: str) -> None:
    quotient = partial_arithmetic.arithmetic(sign, Partial(np.array([6, 6])), Partial(np.array([0, 4])))
    assert np.array_equal(quotient.undefined, [True, False])
    assert quotient.filled()[1] == partial_arithmetic.ARITHMETIC[sign](6, 4)  # type: ignore[index]


@pytest.mark.parametrize(
    ("part", "filled"),
    [
        (Partial(np.array([5, 6]), np.array([True, False])), [0, 6]),
        (Partial(np.array([True, True]), np.array([True, False])), [False, True]),
        (Partial(np.array(["a", "b"]), np.array([True, False])), ["", "b"]),
        (Partial(7, True), 0),
        (Partial("a", True), ""),
        (Partial(True, True), False),
    ],
)
def test_undefined_points_are_filled_with_nothing(part: Partial, filled: object) -> None:
    assert repr(np.asarray(part.filled()).tolist()) == repr(filled)  # a truth is not a number


@given(
    st.sampled_from(["+", "-", "*", "//", "%"]),
    st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=5),
    st.integers(-(2**70), 2**70),
)
def test_columns_are_as_exact_as_integers(sign: str, column: list[int], number: int) -> None:
    for left, right, wanted in (
        (Partial(np.array(column)), Partial(number or 1), [(each, number or 1) for each in column]),
        (Partial(number), Partial(np.array(column)), [(number, each) for each in column]),
    ):
        found = partial_arithmetic.arithmetic(sign, left, right)
        undefined = np.broadcast_to(found.undefined, len(column))
        for point, (a, b) in enumerate(wanted):
            assert undefined[point] == (sign in ("//", "%") and b == 0)
            if not undefined[point]:
                assert found.value[point] == partial_arithmetic.ARITHMETIC[sign](a, b)  # type: ignore[index]


def test_what_has_no_meaning_or_would_fill_the_memory_is_refused() -> None:
    text = Partial("a")
    with pytest.raises(TypeError, match="text"):
        partial_arithmetic.compare("<", text, text)
    with pytest.raises(TypeError, match="text"):
        partial_arithmetic.arithmetic("+", text, text)
    with pytest.raises(TypeError, match="text used as a condition"):
        partial_arithmetic.negate(text)
    with pytest.raises(TypeError, match="a choice between text and a number"):
        partial_arithmetic.choose(Partial(True), text, Partial(1))
    with pytest.raises(OverflowError, match="a power wider than 1024 bits"):
        partial_arithmetic.arithmetic("**", Partial(2**100), Partial(16))
    empty = partial_arithmetic.arithmetic("*", Partial(np.empty(0, np.int64)), Partial(2**70))
    assert len(np.atleast_1d(empty.value)) == 0
