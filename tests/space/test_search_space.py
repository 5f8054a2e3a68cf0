import itertools
from dataclasses import replace

import numpy as np
import pytest

from tuner.core.candidate import Candidate, Value
from tuner.core.errors import UsageError
from tuner.space import search_space
from tuner.space.expressions import parse
from tuner.space.search_space import ConstraintTable, Knob, Rule, SearchSpace, join_tables


def space(*constraints: str) -> SearchSpace:
    rules = tuple(parse(text, "f") for text in constraints)
    return SearchSpace("s", (Knob("a", (1, 2, 3)), Knob("o", ("x", "y"))), rules, (("m", 2),))


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ((), "knob 'a' has no choices"),
        ((1, 2, 1), "knob 'a' repeats a choice"),
        ((1, "x"), "allowed all integers or all texts"),
        ((True, False), "allowed all integers or all texts"),
    ],
)
def test_choices_that_make_no_knob_are_refused(choices: tuple[Value, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Knob("a", choices)
    assert [Knob("a", ("x",)).is_text, Knob("a", (1,)).is_text] == [True, False]


def test_a_candidate_is_its_own_key_whatever_the_order_of_its_knobs_and_combinations_are_counted() -> None:
    one, other = Candidate.of("s", {"b": 1, "a": "x"}), Candidate.of("s", {"a": "x", "b": 1})
    assert (one, hash(one), one.text) == (other, hash(other), "s(a=x, b=1)")
    assert (space().cartesian, SearchSpace("s", ()).cartesian) == (6, 1)


def test_a_repeated_knob_and_an_unknown_name_are_refused() -> None:
    with pytest.raises(ValueError, match="strategy 's' repeats a knob"):
        SearchSpace("s", (Knob("a", (1,)), Knob("a", (2,))))
    with pytest.raises(UsageError, match="f: 'a < q': unknown name 'q', known: a, m, o"):
        space("a < q")
    with pytest.raises(UsageError, match="f: 'q < 1': unknown name 'q', known: a, m, o"):
        replace(space(), preferences=(parse("q < 1", "f"),))


def test_the_first_broken_constraint_or_preference_is_named() -> None:
    candidates = [Candidate.of("s", {"a": a, "o": o}) for a, o in ((3, "y"), (2, "y"), (2, "x"), (1, "x"))]
    one = space("a <= m", "a != 3", "o == 'x'")
    violated = [each and each.text for each in map(one.violated, candidates)]
    assert violated == ["a <= m", "o == 'x'", None, None]
    one = replace(space("a <= m"), preferences=(parse("o == 'x'", "f"), parse("a < m", "f")))
    assert [one.violated(each) for each in candidates[1:]] == [None] * 3
    assert [each and each.text for each in map(one.demoted_by, candidates[1:])] == ["o == 'x'", "a < m", None]


@pytest.mark.parametrize(
    ("strategy", "values", "is_inside"),
    [
        ("s", {"a": 1, "o": "x"}, True),
        ("t", {"a": 1, "o": "x"}, False),
        ("s", {"a": 4, "o": "x"}, False),
        ("s", {"a": 1}, False),
        ("s", {"a": 1, "o": "x", "p": 1}, False),
    ],
)
def test_another_knob_or_choice_is_outside(strategy: str, values: dict[str, Value], is_inside: bool) -> None:
    assert space().contains(Candidate.of(strategy, values)) is is_inside


KNOBS = (Knob("a", (1, 2, 4)), Knob("b", (0, 3)), Knob("c", ("x", "y")))
SPACE = SearchSpace("s", KNOBS, variables=(("m", 4),))
EVERY = np.array(list(itertools.product(range(3), range(2), range(2))))
PICKS = {place: EVERY[:, place] for place in range(3)}


def of(text: str) -> Rule:
    return Rule.of(SPACE, parse(text, "f.yaml: c[0]"))


RULES = ("a < m", "a % b == 0", "c == 'x'", "a * b > 3 or c == 'y'", "m == 4", "b == 0")


@pytest.mark.parametrize("text", RULES)
def test_a_table_says_what_the_evaluation_says(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = of(text)
    assert quick.table is not None
    monkeypatch.setattr(search_space, "TABLE_LIMIT", 0)
    slow = of(text)
    assert slow.table is None
    assert np.array_equal(np.broadcast_to(quick.holds(PICKS), len(EVERY)), slow.holds(PICKS))


def test_each_choice_of_the_last_knob_is_answered_at_once_and_joined_tables_hold_where_both_do() -> None:
    table = of("a * b > 3 or c == 'y'").table
    assert table is not None
    for knob, choices in enumerate((3, 2, 2)):
        each = table.holds_for_each(PICKS, knob)
        assert each.shape == (len(EVERY), choices)
        assert np.array_equal(each[np.arange(len(EVERY)), EVERY[:, knob]], table.holds(PICKS))
    tables = [table for text in ("a < m", "a * b > 3", "c == 'y'") if (table := of(text).table)]
    (joined,) = join_tables(tables)
    assert np.array_equal(joined.holds(PICKS), np.logical_and.reduce([each.holds(PICKS) for each in tables]))


def test_tables_are_joined_up_to_a_limit_and_evaluated_where_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_space, "TABLE_LIMIT", 6)
    wide = [ConstraintTable((n,), np.ones(3, bool)) for n in range(3)]
    assert [one.knobs for one in join_tables(wide)] == [(0,), (1,), (2,)]
    narrow = join_tables([wide[0], ConstraintTable((9,), np.ones(2, bool))])
    assert [one.knobs for one in narrow] == [(0, 9)]
    overflowing = Rule.of(SearchSpace("s", (Knob("a", (1, 2**200)),)), parse("a ** 16 > 0", "f.yaml: c[0]"))
    assert overflowing.table is None
    assert overflowing.holds({0: np.array([0])}).all()
    with pytest.raises(UsageError, match="a power wider than"):
        overflowing.holds({0: np.array([1])})
