"""What every sampler promises: one suite over all of them."""

import random
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.search.tasks import ask
from tuner.core.errors import UsageError
from tuner.core.interfaces import AbstractSampler
from tuner.search.samplers import OPTUNA, SAMPLERS, make_sampler
from tuner.space.expressions import parse
from tuner.space.feasible_set import FeasibleSet
from tuner.space.search_space import Knob, SearchSpace

Outcome = Callable[[int], float | None]


def space(strategy: str, a: int, b: int, constraint: str, *preferences: str) -> SearchSpace:
    knobs = (Knob("a", tuple(range(a))), Knob("b", tuple(range(b))), Knob("order", ("mn", "nm")))
    preferred = tuple(parse(each, "f.yaml: p[0]") for each in preferences)
    return SearchSpace(strategy, knobs, (parse(constraint, "f.yaml: c[0]"),), preferences=preferred)


SMALL = FeasibleSet.of((space("s", 4, 5, "a <= b"), space("t", 2, 3, "a * b < 2")))
LARGE = FeasibleSet.of((space("s", 200, 260, "a % 50 <= b"),))
NAMES = (*SAMPLERS, *(OPTUNA + name for name in ("tpe", "nsgaii", "nsgaiii", "random")))

OUTCOMES: dict[str, Outcome] = {
    "different times": lambda row: 1.0 + (row * 37 % 101) / 100,
    "ties": lambda row: 1.0 + row % 2,
    "equal times": lambda _: 1.0,
    "no time at all": lambda _: 0.0,  # a time, not a failure
    "failures only": lambda _: None,
    "some failures": lambda row: None if row % 3 else float(row + 1),
}

OF_OPTUNA = "allowed .*optuna:tpe, optuna:gp, "
every_sampler = pytest.mark.parametrize("name", NAMES)


def run(sampler: AbstractSampler, trials: range, outcome: Outcome, pending_limit: int = 1) -> list[int]:
    """Asks and tells with some proposals in flight; returns the rows proposed."""
    rows: list[int] = []
    for number in trials:
        if len(rows) >= pending_limit:
            row = rows[-pending_limit]
            sampler.tell(row, outcome(row))
        rows.append(ask(sampler, number))
    for row in rows[-pending_limit:]:
        sampler.tell(row, outcome(row))
    return rows


@pytest.mark.drawn(2)
@every_sampler
@pytest.mark.parametrize(
    ("kind", "pending_limit"),
    [("ties", 1), ("no time at all", 4), ("failures only", 2), ("some failures", 4)],
)
def test_every_row_is_proposed_once_then_none_and_nothing_is_printed(
    name: str, kind: str, pending_limit: int, capfd: pytest.CaptureFixture[str]
) -> None:
    sampler = make_sampler(name, SMALL, seed=1)
    assert sorted(run(sampler, range(SMALL.rows), OUTCOMES[kind], pending_limit)) == list(range(SMALL.rows))
    assert sampler.ask(SMALL.rows) is None
    assert sampler.ask(SMALL.rows + 1) is None
    assert capfd.readouterr() == ("", "")


@every_sampler
def test_every_row_can_be_in_flight_at_once_and_one_row_is_enough(name: str) -> None:
    sampler = make_sampler(name, SMALL, seed=1)
    assert sorted(ask(sampler, number) for number in range(SMALL.rows)) == list(range(SMALL.rows))
    assert sampler.ask(SMALL.rows) is None
    alone = make_sampler(name, FeasibleSet.of((SearchSpace("s", ()),)), seed=0)
    assert alone.ask(0) == 0
    alone.tell(0, None)
    assert alone.ask(1) is None


def require_rows(name: str, feasible: FeasibleSet, count: int) -> None:
    rows = run(make_sampler(name, feasible, seed=5), range(count), OUTCOMES["different times"], 2)
    assert len(set(rows)) == count
    assert 0 <= min(rows) <= max(rows) < feasible.rows


@pytest.mark.drawn(2)
@every_sampler
def test_a_hundred_thousand_rows_are_handled(name: str) -> None:
    assert LARGE.rows >= 90_000
    require_rows(name, LARGE, 24)


@pytest.mark.slow
def test_ten_million_rows_are_handled() -> None:
    huge = FeasibleSet.of((SearchSpace("s", tuple(Knob(f"k{place}", (*range(10),)) for place in range(7))),))
    assert huge.rows == 10_000_000
    for name in ("ensemble", "random", "optuna:nsgaii"):  # an ensemble is four of them
        require_rows(name, huge, 16)


@pytest.mark.drawn(2)
@every_sampler
@pytest.mark.parametrize("kind", ["different times", "equal times"])
def test_equal_seed_and_history_give_equal_proposals(name: str, kind: str) -> None:
    twice = [run(make_sampler(name, SMALL, seed=3), range(20), OUTCOMES[kind], 3) for _ in range(2)]
    assert twice[0] == twice[1]


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", sorted({*NAMES} - {"exhaustive"}))
def test_another_seed_gives_other_proposals(name: str) -> None:
    one, other = (run(make_sampler(name, LARGE, seed), range(5), OUTCOMES["ties"]) for seed in (1, 2))
    assert one != other


@pytest.mark.parametrize(
    ("name", "seed", "message"),
    [
        ("anneal", 0, "sampler: found 'anneal', allowed tpe, local, ensemble, random"),
        *((name, 0, f"found '{name}', {OF_OPTUNA}") for name in ("optuna:", "optuna:guess", "gp")),
        ("random", -1, "seed: found -1, allowed 0 and more"),
    ],
)
def test_an_unknown_sampler_and_a_negative_seed_are_refused(name: str, seed: int, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make_sampler(name, SMALL, seed)


FEW = "a + b < 7"
FEASIBLE = FeasibleSet.of((space("s", 4, 5, FEW, "a <= b"), space("t", 2, 3, FEW, "a * b < 2")))
PREFERRED = np.flatnonzero(FEASIBLE.is_preferred).tolist()
DEMOTED = np.flatnonzero(~FEASIBLE.is_preferred).tolist()


@pytest.mark.drawn(2)
@every_sampler
@pytest.mark.parametrize("pending_limit", [1, 4])
def test_demoted_rows_come_after_all_others_and_each_row_once(name: str, pending_limit: int) -> None:
    sampler = make_sampler(name, FEASIBLE, seed=1)
    rows = run(sampler, range(FEASIBLE.rows), OUTCOMES["some failures"], pending_limit)
    assert sorted(rows[: len(PREFERRED)]) == PREFERRED
    assert sorted(rows[len(PREFERRED) :]) == DEMOTED
    assert sampler.ask(FEASIBLE.rows) is None


@pytest.mark.drawn(2)
@every_sampler
def test_demoted_rows_change_no_proposal_before_them(name: str) -> None:
    trials = range(len(PREFERRED))
    alone = make_sampler(name, FEASIBLE.part(FEASIBLE.is_preferred), seed=2)
    expected = [PREFERRED[row] for row in run(alone, trials, lambda row: 1.0 + PREFERRED[row] % 7)]
    found = run(make_sampler(name, FEASIBLE, seed=2), trials, lambda row: 1.0 + row % 7)
    assert found == expected


@pytest.mark.slow
@every_sampler
@settings(max_examples=8)
@given(
    *(st.sampled_from((SMALL, FEASIBLE)), st.integers(0, 2**32), st.integers(0, 30), st.integers(1, 4)),
    *(st.sampled_from(sorted(OUTCOMES)), st.randoms(use_true_random=False)),
)
def test_a_resumed_run_proposes_what_an_uninterrupted_one_would(
    name: str, feasible: FeasibleSet, seed: int, cut: int, pending: int, kind: str, shuffled: random.Random
) -> None:
    outcome = OUTCOMES[kind]
    uninterrupted, resumed = (make_sampler(name, feasible, seed, (7, 5)) for _ in range(2))
    before = run(uninterrupted, range(cut), outcome, pending)
    for number, row in enumerate(before):
        resumed.replay(number, row)
    shuffled.shuffle(before)
    for row in before:
        resumed.tell(row, outcome(row))
    after = range(cut, min(cut + 8, feasible.rows))
    assert run(resumed, after, outcome) == run(uninterrupted, after, outcome)


FIRST = (DEMOTED[2], PREFERRED[5], DEMOTED[0], DEMOTED[2])


@pytest.mark.drawn(2)
@every_sampler
@pytest.mark.parametrize(("feasible", "first"), [(SMALL, (7, 3, 11, 7)), (FEASIBLE, FIRST)])
def test_first_rows_are_proposed_first(name: str, feasible: FeasibleSet, first: tuple[int, ...]) -> None:
    sampler = make_sampler(name, feasible, seed=0, first=first)
    sampler.replay(0, first[1])
    rows = run(sampler, range(1, feasible.rows), OUTCOMES["ties"])
    assert rows[:2] == [first[0], first[2]]
    assert sorted([first[1], *rows]) == list(range(feasible.rows))


@pytest.mark.drawn(2)
@every_sampler
@pytest.mark.parametrize(("feasible", "row"), [(SMALL, 4), (FEASIBLE, DEMOTED[0])])
def test_a_row_is_replayed_once_and_from_the_set(name: str, feasible: FeasibleSet, row: int) -> None:
    sampler = make_sampler(name, feasible, seed=0)
    sampler.replay(0, row)
    with pytest.raises(ValueError, match=f"row {row} was proposed before"):
        sampler.replay(1, row)
    for outside in (-1, feasible.rows):
        with pytest.raises(ValueError, match=rf"row: found {outside}, allowed 0\.\.{feasible.rows - 1}"):
            sampler.replay(1, outside)
    with pytest.raises(ValueError, match=f"row {DEMOTED[1]} is not pending"):
        sampler.tell(DEMOTED[1], 1.0)
    assert len(run(sampler, range(1, feasible.rows), OUTCOMES["ties"])) == feasible.rows - 1


def test_where_nothing_is_preferred_everything_is_tried() -> None:
    nothing = FeasibleSet.of((space("s", 3, 3, FEW, "a > 9"),))
    rows = run(make_sampler("tpe", nothing, seed=0), range(nothing.rows), OUTCOMES["ties"])
    assert sorted(rows) == list(range(nothing.rows))


@every_sampler
@pytest.mark.drawn(100)
def test_integers_of_any_size_are_proposed(name: str) -> None:
    limits = (-(2**63), -(2**53) - 1, -1, 2**53, 2**53 + 1, 2**63 - 2, 2**63 - 1, 2**64 - 1)
    spaces = [
        SearchSpace("s", (Knob("large", limits), Knob("order", ("mn", "nm"))), ()),
        SearchSpace("t", (Knob("large", (2**63 - 1, 8)),), ()),
    ]
    feasible = FeasibleSet.of(tuple(spaces))
    sampler = make_sampler(name, feasible, 0)
    rows = run(sampler, range(feasible.rows), OUTCOMES["some failures"])
    assert sorted(rows) == list(range(feasible.rows))
    found = {feasible.candidate(row) for row in rows}
    assert {dict(each.choices)["large"] for each in found} == {*limits, 8}
