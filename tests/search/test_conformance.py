"""What every sampler promises: one suite over all of them."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tuner.core.errors import UsageError
from tuner.core.interfaces import AbstractSampler
from tuner.search.samplers import OPTUNA, SAMPLERS, make_sampler
from tuner.space.expressions import parse
from tuner.space.feasible_set import FeasibleSet
from tuner.space.search_space import Knob, SearchSpace

Outcome = Callable[[int], float | None]


def space(strategy: str, a: int, b: int, constraint: str) -> SearchSpace:
    return SearchSpace(
        strategy,
        (Knob("a", tuple(range(a))), Knob("b", tuple(range(b))), Knob("order", ("mn", "nm"))),
        (parse(constraint, "f.yaml: c[0]"),),
    )


SMALL = FeasibleSet.of((space("s", 4, 5, "a <= b"), space("t", 2, 3, "a * b < 2")))
LARGE = FeasibleSet.of((space("s", 200, 260, "a % 50 <= b"),))
NAMES = (*SAMPLERS, *(OPTUNA + name for name in ("tpe", "nsgaii", "nsgaiii", "random")))
ONE = FeasibleSet.of((SearchSpace("s", ()),))

OUTCOMES: dict[str, Outcome] = {
    "different times": lambda row: 1.0 + (row * 37 % 101) / 100,
    "ties": lambda row: 1.0 + row % 2,
    "equal times": lambda _: 1.0,
    "no time at all": lambda _: 0.0,  # a time, not a failure
    "failures only": lambda _: None,
    "some failures": lambda row: None if row % 3 else float(row + 1),
}

every_sampler = pytest.mark.parametrize("name", NAMES)


def ask(sampler: AbstractSampler, number: int) -> int:
    row = sampler.ask(number)
    assert row is not None
    return row


def run(
    sampler: AbstractSampler, trials: range, outcome: Outcome, pending_limit: int = 1
) -> list[tuple[int, int]]:
    """Asks and tells with some proposals in flight; returns (number, row) of each proposal."""
    proposals: list[tuple[int, int]] = []
    for number in trials:
        if len(proposals) >= pending_limit:
            row = proposals[-pending_limit][1]
            sampler.tell(row, outcome(row))
        proposals.append((number, ask(sampler, number)))
    for _, row in proposals[-pending_limit:]:
        sampler.tell(row, outcome(row))
    return proposals


@pytest.mark.drawn(2)
@every_sampler
@pytest.mark.parametrize(
    ("kind", "pending_limit"),
    [("ties", 1), ("no time at all", 4), ("failures only", 2), ("some failures", 4)],
)
def test_every_row_is_proposed_once_then_none(name: str, kind: str, pending_limit: int) -> None:
    sampler = make_sampler(name, SMALL, seed=1)
    proposals = run(sampler, range(SMALL.rows), OUTCOMES[kind], pending_limit)
    assert sorted(row for _, row in proposals) == list(range(SMALL.rows))
    assert sampler.ask(SMALL.rows) is None
    assert sampler.ask(SMALL.rows + 1) is None


@every_sampler
def test_every_row_can_be_in_flight_at_once(name: str) -> None:
    sampler = make_sampler(name, SMALL, seed=1)
    rows = [ask(sampler, number) for number in range(SMALL.rows)]
    assert sorted(rows) == list(range(SMALL.rows))
    assert sampler.ask(SMALL.rows) is None


@every_sampler
def test_one_row_is_enough(name: str) -> None:
    sampler = make_sampler(name, ONE, seed=0)
    assert sampler.ask(0) == 0
    sampler.tell(0, None)
    assert sampler.ask(1) is None


@pytest.mark.drawn(2)
@every_sampler
def test_a_hundred_thousand_rows_are_handled(name: str) -> None:
    assert LARGE.rows >= 90_000
    proposals = run(make_sampler(name, LARGE, seed=5), range(24), OUTCOMES["different times"], 2)
    rows = [row for _, row in proposals]
    assert len(set(rows)) == 24
    assert 0 <= min(rows) <= max(rows) < LARGE.rows


@pytest.fixture(scope="module")
def huge() -> FeasibleSet:
    knobs = tuple(Knob(f"k{place}", tuple(range(10))) for place in range(7))
    return FeasibleSet.of((SearchSpace("s", knobs),))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ensemble", "random", "optuna:nsgaii"])  # an ensemble is four of them
def test_ten_million_rows_are_handled(name: str, huge: FeasibleSet) -> None:
    assert huge.rows == 10_000_000
    rows = [
        row for _, row in run(make_sampler(name, huge, seed=5), range(16), OUTCOMES["different times"], 2)
    ]
    assert len(set(rows)) == 16
    assert 0 <= min(rows) <= max(rows) < huge.rows


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


@pytest.mark.slow
@every_sampler
@settings(max_examples=8, deadline=None)
@given(
    st.integers(0, 2**32),
    st.integers(0, 30),
    st.integers(1, 4),
    st.sampled_from(sorted(OUTCOMES)),
    st.randoms(use_true_random=False),
)
def test_a_resumed_run_proposes_what_an_uninterrupted_one_would(
    name: str, seed: int, cut: int, pending_limit: int, kind: str, shuffled: random.Random
) -> None:
    uninterrupted, resumed = make_sampler(name, SMALL, seed), make_sampler(name, SMALL, seed)
    before = run(uninterrupted, range(cut), OUTCOMES[kind], pending_limit)
    for number, row in before:
        resumed.replay(number, row)
    reported = [row for _, row in before]
    shuffled.shuffle(reported)
    for row in reported:
        resumed.tell(row, OUTCOMES[kind](row))
    after = range(cut, min(cut + 8, SMALL.rows))
    assert run(resumed, after, OUTCOMES[kind]) == run(uninterrupted, after, OUTCOMES[kind])


@pytest.mark.drawn(2)
@every_sampler
def test_a_replayed_row_that_was_never_reported_stays_pending(name: str) -> None:
    sampler = make_sampler(name, SMALL, seed=0)
    sampler.replay(0, 9)
    rows = [row for _, row in run(sampler, range(1, SMALL.rows), OUTCOMES["ties"])]
    assert 9 not in rows
    assert sampler.ask(SMALL.rows) is None
    sampler.tell(9, 1.0)


@every_sampler
def test_first_rows_are_proposed_first(name: str) -> None:
    sampler = make_sampler(name, SMALL, seed=0, first=(7, 3, 7, 11))
    sampler.replay(0, 3)
    rows = [row for _, row in run(sampler, range(1, 6), OUTCOMES["ties"])]
    assert rows[:2] == [7, 11]
    assert len({3, *rows}) == 6


@every_sampler
def test_a_row_that_is_not_pending_cannot_be_reported(name: str) -> None:
    sampler = make_sampler(name, SMALL, seed=0)
    row = ask(sampler, 0)
    with pytest.raises(ValueError, match="is not pending"):
        sampler.tell((row + 1) % SMALL.rows, 1.0)
    sampler.tell(row, 1.0)
    with pytest.raises(ValueError, match="is not pending"):
        sampler.tell(row, 1.0)


@pytest.mark.drawn(2)
@every_sampler
def test_a_row_cannot_be_replayed_twice_or_from_outside_the_set(name: str) -> None:
    sampler = make_sampler(name, SMALL, seed=0)
    sampler.replay(0, 4)
    with pytest.raises(ValueError, match="row 4 was proposed before"):
        sampler.replay(1, 4)
    for row in (-1, SMALL.rows):
        with pytest.raises(ValueError, match=rf"row: found {row}, allowed 0\.\.{SMALL.rows - 1}"):
            sampler.replay(1, row)
    assert len(run(sampler, range(1, SMALL.rows), OUTCOMES["ties"])) == SMALL.rows - 1


@pytest.mark.drawn(2)
@every_sampler
def test_nothing_is_printed(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    run(make_sampler(name, SMALL, seed=0), range(SMALL.rows), OUTCOMES["some failures"])
    assert capfd.readouterr() == ("", "")


def test_an_unknown_sampler_is_reported_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="sampler: found 'anneal', allowed tpe, local, ensemble, random"):
        make_sampler("anneal", SMALL, seed=0)


@pytest.mark.parametrize("name", ["optuna:", "optuna:guess", "gp"])
def test_optuna_has_no_other_samplers(name: str) -> None:
    with pytest.raises(UsageError, match=rf"sampler: found '{name}', allowed .*optuna:tpe, optuna:gp, "):
        make_sampler(name, SMALL, seed=0)


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(UsageError, match="seed: found -1, allowed 0 and more"):
        make_sampler("random", SMALL, seed=-1)
