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
    return SearchSpace(
        "s",
        (Knob("a", (1, 2, 3)), Knob("o", ("x", "y"))),
        tuple(parse(text, "f") for text in constraints),
        (("m", 2),),
    )


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


def test_a_knob_knows_whether_it_has_an_order() -> None:
    assert Knob("a", ("x",)).is_text
    assert not Knob("a", (1,)).is_text


def test_a_candidate_is_its_own_key_whatever_the_order_of_its_knobs() -> None:
    one, other = Candidate.of("s", {"b": 1, "a": "x"}), Candidate.of("s", {"a": "x", "b": 1})
    assert one == other
    assert hash(one) == hash(other)
    assert one.text == "s(a=x, b=1)"


def test_a_repeated_knob_is_refused() -> None:
    with pytest.raises(ValueError, match="strategy 's' repeats a knob"):
        SearchSpace("s", (Knob("a", (1,)), Knob("a", (2,))))


def test_a_constraint_over_an_unknown_name_is_refused() -> None:
    with pytest.raises(UsageError, match="f: 'a < q': unknown name 'q', known: a, m, o"):
        space("a < q")


def test_a_preference_over_an_unknown_name_is_refused() -> None:
    with pytest.raises(UsageError, match="f: 'q < 1': unknown name 'q', known: a, m, o"):
        replace(space(), preferences=(parse("q < 1", "f"),))


def test_the_first_preference_that_is_broken_is_named_and_rejects_nothing() -> None:
    one = replace(space("a <= m"), preferences=(parse("o == 'x'", "f"), parse("a < m", "f")))
    candidates = [Candidate.of("s", {"a": a, "o": o}) for a, o in ((2, "y"), (2, "x"), (1, "x"))]
    assert [one.violated(each) for each in candidates] == [None] * 3
    assert [each and each.text for each in map(one.demoted_by, candidates)] == ["o == 'x'", "a < m", None]


def test_every_combination_is_counted() -> None:
    assert space().cartesian == 6
    assert SearchSpace("s", ()).cartesian == 1


def test_the_first_violated_constraint_in_file_order_is_named() -> None:
    one = space("a <= m", "a != 3", "o == 'x'")
    violated = [one.violated(Candidate.of("s", {"a": a, "o": o})) for a, o in ((3, "y"), (2, "y"), (2, "x"))]
    assert [each and each.text for each in violated] == ["a <= m", "o == 'x'", None]


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
def test_a_candidate_of_other_knobs_or_choices_is_outside(
    strategy: str, values: dict[str, Value], is_inside: bool
) -> None:
    assert space().contains(Candidate.of(strategy, values)) is is_inside


SPACE = SearchSpace(
    "s", (Knob("a", (1, 2, 4)), Knob("b", (0, 3)), Knob("c", ("x", "y"))), variables=(("m", 4),)
)


EVERY = np.array(list(itertools.product(range(3), range(2), range(2))))


PICKS = {place: EVERY[:, place] for place in range(3)}


def of(text: str) -> Rule:
    return Rule.of(SPACE, parse(text, "f.yaml: c[0]"))


@pytest.mark.parametrize(
    "text", ["a < m", "a % b == 0", "c == 'x'", "a * b > 3 or c == 'y'", "m == 4", "b == 0"]
)
def test_a_table_says_what_the_evaluation_says(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = of(text)
    assert quick.table is not None
    monkeypatch.setattr(search_space, "TABLE_LIMIT", 0)
    slow = of(text)
    assert slow.table is None
    assert np.array_equal(np.broadcast_to(quick.holds(PICKS), len(EVERY)), slow.holds(PICKS))


def test_each_choice_of_the_last_knob_is_answered_at_once() -> None:
    table = of("a * b > 3 or c == 'y'").table
    assert table is not None
    for knob, choices in enumerate((3, 2, 2)):
        each = table.holds_for_each(PICKS, knob)
        assert each.shape == (len(EVERY), choices)
        assert np.array_equal(each[np.arange(len(EVERY)), EVERY[:, knob]], table.holds(PICKS))


def test_joined_tables_hold_where_both_do() -> None:
    tables = [table for text in ("a < m", "a * b > 3", "c == 'y'") if (table := of(text).table)]
    (joined,) = join_tables(tables)
    assert np.array_equal(joined.holds(PICKS), np.logical_and.reduce([each.holds(PICKS) for each in tables]))


def test_tables_are_not_joined_beyond_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_space, "TABLE_LIMIT", 6)
    wide = [ConstraintTable((n,), np.ones(3, bool)) for n in range(3)]
    assert [one.knobs for one in join_tables(wide)] == [(0,), (1,), (2,)]
    assert [one.knobs for one in join_tables([*wide[:1], ConstraintTable((9,), np.ones(2, bool))])] == [
        (0, 9)
    ]


def test_what_cannot_be_evaluated_somewhere_is_asked_for_only_where_it_is_needed() -> None:
    wide = Rule.of(SearchSpace("s", (Knob("a", (1, 2**200)),)), parse("a ** 16 > 0", "f.yaml: c[0]"))
    assert wide.table is None
    assert wide.holds({0: np.array([0])}).all()
    with pytest.raises(UsageError, match="a power wider than"):
        wide.holds({0: np.array([1])})
