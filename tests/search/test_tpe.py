import statistics

import pytest

from tuner.search.samplers import make_sampler
from tuner.space.feasible_set import FeasibleSet
from tuner.space.search_space import Knob, SearchSpace

EIGHT = tuple(range(8))


def grid(strategy: str, knobs: str = "abcd") -> SearchSpace:
    return SearchSpace(strategy, tuple(Knob(name, EIGHT) for name in knobs))


def seconds(feasible: FeasibleSet, row: int) -> float:
    """A valley whose knobs interact; strategy "t" is slower everywhere."""
    values = dict(feasible.candidate(row).choices)
    a, b, c, d = (int(values[name]) for name in "abcd")
    slower = 5 if feasible.candidate(row).strategy == "t" else 0
    return 1.0 + slower + abs(a - b) + (c - 5) ** 2 / 4 + abs(a + d - 9)


def search(name: str, feasible: FeasibleSet, seed: int, trials: int) -> list[tuple[int, float]]:
    sampler = make_sampler(name, feasible, seed)
    found = []
    for number in range(trials):
        row = sampler.ask(number)
        assert row is not None
        found.append((row, seconds(feasible, row)))
        sampler.tell(*found[-1])
    return found


@pytest.mark.slow
def test_it_finds_better_rows_than_random_in_the_same_trials() -> None:
    feasible = FeasibleSet.of((grid("s"),))
    best = {
        name: [min(time_s for _, time_s in search(name, feasible, seed, 60)) for seed in range(6)]
        for name in ("tpe", "random")
    }
    assert statistics.mean(best["tpe"]) < statistics.mean(best["random"]) - 0.3


@pytest.mark.slow
def test_it_settles_on_the_better_strategy() -> None:
    feasible = FeasibleSet.of((grid("s"), grid("t")))
    found = [search("tpe", feasible, seed, 30)[10:] for seed in range(3)]
    of_s = [feasible.candidate(row).strategy == "s" for rows in found for row, _ in rows]
    assert sum(of_s) >= 40  # of 60


def test_the_start_visits_every_strategy_however_small() -> None:
    feasible = FeasibleSet.of((grid("s"), grid("t", "abcd"), SearchSpace("u", (Knob("a", (1, 2)),))))
    sampler = make_sampler("tpe", feasible, seed=0)
    rows = [sampler.ask(number) for number in range(9)]
    met = [feasible.candidate(row).strategy for row in rows if row is not None]
    assert [met.count(name) for name in "stu"] == [4, 3, 2]


@pytest.mark.slow
@pytest.mark.parametrize("is_reported", [False, True])
def test_rows_in_flight_and_failures_keep_the_next_ask_away(is_reported: bool) -> None:
    odd = tuple(range(1, 200, 2))  # of one alignment: near is near in value alone
    feasible = FeasibleSet.of((SearchSpace("s", (Knob("a", odd),)),))
    gaps = []
    for seed in range(20):
        sampler = make_sampler("tpe", feasible, seed)
        rows = [sampler.ask(number) for number in range(10)]
        for row in rows if is_reported else ():
            assert row is not None
            sampler.tell(row, None)
        chosen = sampler.ask(10)
        assert chosen is not None
        gaps.append(min(abs(chosen - row) for row in rows if row is not None))
    assert sum(gap >= 5 for gap in gaps) >= 17  # without the lie: about half


def test_a_time_of_zero_is_the_fastest_not_a_failure() -> None:
    feasible = FeasibleSet.of((SearchSpace("s", (Knob("a", tuple(range(100))),)),))
    near = []
    for fastest in (0.0, None):
        sampler = make_sampler("tpe", feasible, 0, first=(25,))
        rows = []
        for number in range(20):
            row = sampler.ask(number)
            assert row is not None
            rows.append(row)
            sampler.tell(row, fastest if 20 <= row < 30 else 1.0)
        near.append(sum(15 <= row < 35 for row in rows))
    assert near[0] > near[1]
