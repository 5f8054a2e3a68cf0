import pickle
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tuner.core.errors import UsageError
from tuner.space.expressions import parse

NAMES = ("a", "b", "c")
SMALL = st.integers(-20, 20)


def value(text: str, **values: object) -> object:
    return parse(text, "f.yaml: c[0]").evaluate(values)  # type: ignore[arg-type]


def grow(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Returns texts one level deeper."""
    return st.one_of(
        st.tuples(parts, st.sampled_from(["+", "-", "*", "//", "%"]), parts).map(
            lambda t: f"({' '.join(t)})"
        ),
        st.tuples(parts, st.sampled_from(["<", "<=", "==", "!=", ">", ">="]), parts, parts).map(
            lambda t: f"({t[0]} {t[1]} {t[2]} {t[1]} {t[3]})"
        ),
        st.tuples(parts, st.sampled_from(["and", "or"]), parts).map(lambda t: f"bool({t[0]} {t[1]} {t[2]})"),
        st.tuples(parts, parts, parts).map(lambda t: f"({t[0]} if {t[1]} else {t[2]})"),
        st.tuples(st.sampled_from(["min", "max"]), parts, parts).map(lambda t: f"{t[0]}({t[1]}, {t[2]})"),
        parts.map(lambda t: f"abs({t})"),
        parts.map(lambda t: f"(-{t})"),
        parts.map(lambda t: f"(not {t})"),
        parts.map(lambda t: f"({t} ** 3)"),
        parts.map(lambda t: f"({t} in (1, -2, 3))"),
        parts.map(lambda t: f"({t} not in (0, 5))"),
    )


TEXTS = st.recursive(st.one_of(st.sampled_from(NAMES), SMALL.map(str)), grow, max_leaves=6)


@settings(deadline=None)  # of a shared machine
@given(TEXTS, st.lists(st.tuples(SMALL, SMALL, SMALL), min_size=1, max_size=8))
def test_an_expression_means_what_it_means_in_python_point_by_point(
    text: str, points: list[tuple[int, int, int]]
) -> None:
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
    column = value(text, k=12, b=np.array([0, 5, 6]))
    assert np.array_equal(column, wanted)  # type: ignore[arg-type]
    assert [value(text, k=12, b=b) for b in (0, 5, 6)] == wanted


@settings(deadline=None)  # of a shared machine
@given(st.integers(1, 10**6), st.integers(1, 10**4))
def test_ceil_div_rounds_up(a: int, b: int) -> None:
    assert value("ceil_div(a, b)", a=a, b=b) == -(-a // b)
    assert value("ceil_div(a, b)", a=np.array([a]), b=b) == [-(-a // b)]


@settings(deadline=None)  # of a shared machine
@given(st.lists(st.integers(0, 2**31), min_size=1), st.integers(1, 2**31))
def test_integers_wider_than_a_machine_word_stay_exact(numbers: list[int], m: int) -> None:
    column = value("m * m * a * a - 1 < m ** 4 // 3", a=np.array(numbers), m=m)
    assert list(column) == [m * m * a * a - 1 < m**4 // 3 for a in numbers]  # type: ignore[call-overload]


def test_texts_compare_by_equality_and_membership() -> None:
    orders = np.array(["mn", "nm", "kk"])
    assert list(value("o == 'mn'", o=orders)) == [True, False, False]  # type: ignore[call-overload]
    assert list(value("o != 'mn'", o=orders)) == [False, True, True]  # type: ignore[call-overload]
    assert list(value("o in ('mn', 'kk')", o=orders)) == [True, False, True]  # type: ignore[call-overload]
    assert value("layout not in ('nn',)", layout="nt") is True
    assert list(value("('a' if x else 'b') == 'a'", x=np.array([0, 1]))) == [False, True]  # type: ignore[call-overload]


@pytest.mark.parametrize(
    "text",
    [
        "o < 'x'",
        "o + 1 > 0",
        "o == 1",
        "o in (1, 2)",
        "-o",
        "abs(o)",
        "o and x",
        "not o",
        "min(o, 'a')",
        "o if x else 1",
    ],
)
def test_a_text_where_only_numbers_make_sense_is_reported(text: str) -> None:
    for o in ("mn", np.array(["mn", "nm"])):
        with pytest.raises(
            UsageError, match=rf"f\.yaml: c\[0\]: {re.escape(repr(text))}: .*text.*; arithmetic is for"
        ):
            value(text, o=o, x=1)


def test_an_unknown_name_is_reported_with_the_known_ones() -> None:
    with pytest.raises(
        UsageError, match=r"f\.yaml: c\[0\]: 'tile_q < m': unknown name 'tile_q', known: m, n"
    ):
        value("tile_q < m", m=1, n=2)


def test_the_names_of_functions_are_no_names() -> None:
    assert parse("min(a, min) + abs(b) > ceil_div(m, a)", "f").names == {"a", "b", "m", "min"}


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "__import__('os').system('ls')",
        "eval('1')",
        "open('x')",
        "a.b",
        "().__class__.__bases__",
        "a[0]",
        "lambda: 1",
        "[x for x in (1, 2)]",
        "{x for x in (1, 2)}",
        "(x for x in (1, 2))",
        "(1, 2)",
        "[1]",
        "{1: 2}",
        "f'{a}'",
        "(a := 1)",
        "await a",
        "min(*a)",
        "min(a, key=b)",
        "min(a)",
        "abs(a, b)",
        "ceil_div(a)",
        "(min)(a, b)(c)",
        "a is b",
        "a in b",
        "a in ()",
        "a in (b, c)",
        "a in (1, 2) < 3",
        "a @ b",
        "a & b",
        "a << 1000000000",
        "~a",
        "2 ** a",
        "2 ** 17",
        "2 ** -1",
        "2 ** 2.5",
        "2 ** True",
        "9 ** 9 ** 9 ** 9",
        "True",
        "None",
        "...",
        "b'x'",
        "1j",
        "1e999",
    ],
)
def test_anything_outside_the_whitelist_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"f\.yaml: found .*, allowed names, numbers, 'text', \+ - \*"):
        parse(text, "f.yaml")


@pytest.mark.parametrize(
    "text",
    ["", "a b", "a <", "a = 1", "a; b", "import os", "1or 2", "'\\d'", "a\0", "(" * 300, "\\"],
)
def test_text_that_is_no_expression_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"f\.yaml: .* is not an expression \(.*\), allowed"):
        parse(text, "f.yaml")


def test_a_name_is_looked_up_among_the_values_and_nowhere_else() -> None:
    with pytest.raises(UsageError, match="unknown name 'print', known: m"):
        value("print == 1", m=1)
    assert value("print == 1", print=1) is True


def test_long_text_is_refused() -> None:
    with pytest.raises(UsageError, match="found an expression of 1001 characters, allowed 1000"):
        parse("a" * 1001, "f.yaml")


@pytest.mark.parametrize(
    "text", ["-" * 900 + "1", "not " * 240 + "a", "a+" * 400 + "a", "a if b else " * 80 + "a"]
)
def test_deep_text_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"nested deeper, allowed 40 levels|not an expression"):
        parse(text, "f.yaml")


@pytest.mark.parametrize("text", ["((a ** 16) ** 16) ** 16 > 0", "a ** 16 * a ** 16 * 1.5 > 0"])
def test_a_number_that_would_fill_the_memory_is_refused(text: str) -> None:
    for a in (2**60, np.array([2**60])):
        with pytest.raises(UsageError, match=r": .*; arithmetic is for numbers below 2\*\*1024"):
            value(text, a=a)


def test_lines_are_joined() -> None:
    assert parse(" a\n  < 3 ", "f").text == "a < 3"


def test_equal_texts_are_equal_wherever_they_stand() -> None:
    assert parse("a < 3", "f") == parse("a  < 3", "g")
    assert len({parse("a < 3", "f"), parse("a < 3", "g"), parse("a < 4", "f")}) == 2


def test_an_expression_crosses_process_borders() -> None:
    assert pickle.loads(pickle.dumps(parse("a < 3", "f"))).evaluate({"a": 2}) is True
