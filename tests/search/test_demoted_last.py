"""Rows that break a preference come last, whatever the method; none is left out."""

import numpy as np
import pytest

from tests.search.test_conformance import NAMES, OUTCOMES, ask, run
from tuner.search.samplers import make_sampler
from tuner.space.expressions import parse
from tuner.space.feasible_set import FeasibleSet
from tuner.space.search_space import Knob, SearchSpace


def space(strategy: str, a: int, b: int, preference: str) -> SearchSpace:
    knobs = (Knob("a", tuple(range(a))), Knob("b", tuple(range(b))), Knob("order", ("mn", "nm")))
    constraint, preferred = parse("a + b < 7", "f.yaml: c[0]"), parse(preference, "f.yaml: p[0]")
    return SearchSpace(strategy, knobs, (constraint,), preferences=(preferred,))


FEASIBLE = FeasibleSet.of((space("s", 4, 5, "a <= b"), space("t", 2, 3, "a * b < 2")))
PREFERRED = np.flatnonzero(FEASIBLE.is_preferred).tolist()
DEMOTED = np.flatnonzero(~FEASIBLE.is_preferred).tolist()
NOTHING_PREFERRED = FeasibleSet.of((space("s", 3, 3, "a > 9"),))

every_sampler = pytest.mark.parametrize("name", NAMES)


def rows_of(proposals: list[tuple[int, int]]) -> list[int]:
    return [row for _, row in proposals]


@pytest.mark.drawn(2)
@every_sampler
@pytest.mark.parametrize("pending_limit", [1, 4])
def test_demoted_rows_come_after_all_others_and_each_row_once(name: str, pending_limit: int) -> None:
    sampler = make_sampler(name, FEASIBLE, seed=1)
    rows = rows_of(run(sampler, range(FEASIBLE.rows), OUTCOMES["some failures"], pending_limit))
    assert sorted(rows[: len(PREFERRED)]) == PREFERRED
    assert sorted(rows[len(PREFERRED) :]) == DEMOTED
    assert sampler.ask(FEASIBLE.rows) is None


@pytest.mark.drawn(2)
@every_sampler
def test_demoted_rows_change_no_proposal_before_them(name: str) -> None:
    trials = range(len(PREFERRED))
    alone = make_sampler(name, FEASIBLE.part(FEASIBLE.is_preferred), seed=2)
    expected = [PREFERRED[row] for row in rows_of(run(alone, trials, lambda row: 1.0 + PREFERRED[row] % 7))]
    found = rows_of(run(make_sampler(name, FEASIBLE, seed=2), trials, lambda row: 1.0 + row % 7))
    assert found == expected


@pytest.mark.drawn(2)
@every_sampler
def test_first_rows_are_proposed_first_even_demoted_ones(name: str) -> None:
    first = (DEMOTED[2], PREFERRED[5], DEMOTED[0], DEMOTED[2])
    sampler = make_sampler(name, FEASIBLE, seed=0, first=first)
    sampler.replay(0, PREFERRED[5])
    rows = rows_of(run(sampler, range(1, FEASIBLE.rows), OUTCOMES["ties"]))
    assert rows[:2] == [DEMOTED[2], DEMOTED[0]]
    assert sorted([PREFERRED[5], *rows]) == list(range(FEASIBLE.rows))


@pytest.mark.drawn(2)
@every_sampler
@pytest.mark.parametrize("cut", [3, len(PREFERRED), len(PREFERRED) + 3])
def test_a_resumed_run_proposes_what_an_uninterrupted_one_would(name: str, cut: int) -> None:
    uninterrupted, resumed = (make_sampler(name, FEASIBLE, 7, (DEMOTED[1],)) for _ in range(2))
    before = run(uninterrupted, range(cut), OUTCOMES["different times"], 2)
    for number, row in before:
        resumed.replay(number, row)
    for _, row in reversed(before):
        resumed.tell(row, OUTCOMES["different times"](row))
    after = range(cut, min(cut + 8, FEASIBLE.rows))
    assert run(resumed, after, OUTCOMES["ties"]) == run(uninterrupted, after, OUTCOMES["ties"])


def test_where_nothing_is_preferred_everything_is_tried() -> None:
    sampler = make_sampler("tpe", NOTHING_PREFERRED, seed=0)
    rows = rows_of(run(sampler, range(NOTHING_PREFERRED.rows), OUTCOMES["ties"]))
    assert sorted(rows) == list(range(NOTHING_PREFERRED.rows))


def test_a_row_cannot_be_proposed_twice_told_twice_or_come_from_outside() -> None:
    sampler = make_sampler("random", FEASIBLE, seed=0)
    sampler.replay(0, DEMOTED[0])
    with pytest.raises(ValueError, match=f"row {DEMOTED[0]} was proposed before"):
        sampler.replay(1, DEMOTED[0])
    with pytest.raises(ValueError, match=rf"row: found -1, allowed 0\.\.{FEASIBLE.rows - 1}"):
        sampler.replay(1, -1)
    sampler.tell(DEMOTED[0], None)
    row = ask(sampler, 1)
    assert row in PREFERRED
    with pytest.raises(ValueError, match=f"row {DEMOTED[1]} is not pending"):
        sampler.tell(DEMOTED[1], 1.0)
