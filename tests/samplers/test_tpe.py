import statistics
import time

import numpy as np
import pytest

from tuner.feasible import FeasibleSet
from tuner.samplers import make_sampler
from tuner.samplers.kernel import PRIOR, Kernel
from tuner.space import Knob, SearchSpace

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


def test_it_finds_better_rows_than_random_in_the_same_trials() -> None:
    feasible = FeasibleSet.of((grid("s"),))
    best = {
        name: [min(time_s for _, time_s in search(name, feasible, seed, 80)) for seed in range(8)]
        for name in ("tpe", "random")
    }
    assert statistics.mean(best["tpe"]) < statistics.mean(best["random"]) - 0.3


def test_it_settles_on_the_better_strategy() -> None:
    feasible = FeasibleSet.of((grid("s"), grid("t")))
    rows = [row for row, _ in search("tpe", feasible, seed=1, trials=100)]
    of_s = sum(feasible.candidate(row).strategy == "s" for row in rows[20:])
    assert of_s >= 64


def test_the_start_visits_every_strategy_however_small() -> None:
    feasible = FeasibleSet.of((grid("s"), grid("t", "abcd"), SearchSpace("u", (Knob("a", (1, 2)),))))
    sampler = make_sampler("tpe", feasible, seed=0)
    rows = [sampler.ask(number) for number in range(15)]
    met = [feasible.candidate(row).strategy for row in rows if row is not None]
    assert [met.count(name) for name in "stu"] == [7, 6, 2]


@pytest.mark.parametrize("is_told", [False, True])
def test_rows_in_flight_and_failures_keep_the_next_ask_away(is_told: bool) -> None:
    feasible = FeasibleSet.of((SearchSpace("s", (Knob("a", tuple(range(100))),)),))
    gaps = []
    for seed in range(20):
        sampler = make_sampler("tpe", feasible, seed)
        rows = [sampler.ask(number) for number in range(10)]
        for row in rows if is_told else ():
            assert row is not None
            sampler.tell(row, None)
        chosen = sampler.ask(10)
        assert chosen is not None
        gaps.append(min(abs(chosen - row) for row in rows if row is not None))
    assert sum(gap >= 5 for gap in gaps) >= 17  # without the lie: about half


@pytest.mark.parametrize("seed", range(3))
def test_only_the_order_of_times_matters_even_when_one_is_zero(seed: int) -> None:
    feasible = FeasibleSet.of((SearchSpace("s", (Knob("a", tuple(range(100))),)),))
    proposals = []
    for fastest in (0.0, 0.5, None):
        sampler = make_sampler("tpe", feasible, seed, first=(25,))
        rows = []
        for number in range(30):
            row = sampler.ask(number)
            assert row is not None
            rows.append(row)
            sampler.tell(row, fastest if 20 <= row < 30 else 1.0 + row)
        proposals.append(rows)
    assert proposals[0] == proposals[1]
    assert proposals[0] != proposals[2]  # a failure is something else


def test_an_ask_among_twenty_thousand_rows_takes_less_than_twenty_milliseconds() -> None:
    knobs = tuple(Knob(name, EIGHT) for name in "abcd") + tuple(Knob(name, (0, 1)) for name in "efg")
    feasible = FeasibleSet.of((SearchSpace("s", knobs),))
    assert feasible.rows > 20_000
    sampler = make_sampler("tpe", feasible, seed=0)
    took = []
    for number in range(120):
        start = time.process_time()
        row = sampler.ask(number)
        took.append(time.process_time() - start)
        assert row is not None
        sampler.tell(row, seconds(feasible, row))
    assert statistics.median(took[20:]) < 0.020


def test_the_kernel_is_a_density_whose_mean_is_the_prior() -> None:
    around = Kernel(FeasibleSet.of((grid("s"),)).matrix()).around(123)
    assert abs(float(around.mean()) / PRIOR - 1) < 0.01
    assert int(np.argmax(around)) == 123


def test_nearer_values_are_likelier_and_texts_are_same_or_different() -> None:
    feasible = FeasibleSet.of((SearchSpace("s", (Knob("a", (1, 2, 8)), Knob("o", ("x", "y", "z")))),))
    around = Kernel(feasible.matrix()).around(0).reshape(3, 3)
    assert around[0, 0] > around[1, 0] > around[2, 0]
    assert around[0, 0] > around[0, 1] == around[0, 2]


def test_another_strategy_is_far_and_a_missing_knob_says_nothing() -> None:
    feasible = FeasibleSet.of(
        (SearchSpace("s", (Knob("a", (1, 2)),)), SearchSpace("t", (Knob("a", (1, 2)), Knob("b", (1, 2)))))
    )
    around = Kernel(feasible.matrix()).around(0)  # s(a=1)
    assert around[0] > around[1] > around[2] > around[4]
    assert around[2] == around[3]
