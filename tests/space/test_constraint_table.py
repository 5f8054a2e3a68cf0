import itertools

import numpy as np
import pytest

from tuner.core.errors import UsageError
from tuner.space import search_space
from tuner.space.expressions import parse
from tuner.space.search_space import ConstraintTable, Knob, Rule, SearchSpace, join_tables

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
