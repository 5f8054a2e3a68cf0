import math
import statistics
from itertools import pairwise

import numpy as np
import pytest

from tests.search.tasks import grid, line, task, tell
from tuner.search import surrogates
from tuner.search.configurations import Column, RowTable
from tuner.search.samplers import make_sampler
from tuner.search.surrogates import (
    FIT_GROWTH,
    Surrogate,
    Trees,
    _fit_rows,
    _questions,
    log_expected_improvement,
)
from tuner.search.task import SearchTask
from tuner.space.feasible_set import FeasibleSet
from tuner.space.search_space import Knob, SearchSpace


@pytest.mark.parametrize(("mean", "deviation"), [(0.0, 1.0), (1.0, 0.5), (-1.0, 2.0), (2.0, 1.0)])
def test_it_is_the_mean_gain_of_normal_values(mean: float, deviation: float) -> None:
    drawn = np.random.default_rng(0).normal(mean, deviation, 400_000)
    gain = float(np.maximum(0.2 - drawn, 0).mean())
    given = log_expected_improvement(np.array([mean], np.float32), np.array([deviation], np.float32), 0.2)
    assert math.exp(given[0]) == pytest.approx(gain, rel=0.03)


def test_a_lower_mean_or_a_larger_deviation_gains_more() -> None:
    mean, deviation = np.array([0, 1, 1], np.float32), np.array([1, 1, 2], np.float32)
    gain = log_expected_improvement(mean, deviation, 0.0)
    assert gain[0] > gain[1] < gain[2]


def test_no_chance_is_a_number() -> None:
    gain = log_expected_improvement(np.array([50], np.float32), np.array([1e-3], np.float32), 0.0)
    assert np.isfinite(gain).all()


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_a_cliff_is_learned_where_a_sum_decides() -> None:
    square = task(grid("abc"))
    values = np.where(square.table.codes[:, 0] + square.table.codes[:, 1] > 8, 1.0, -1.0)
    seen = rng(1).permutation(512)[:150]
    mean, _ = surrogates.grow(square.table.part(seen), values[seen], rng()).predict(square.table)
    unseen = np.setdiff1d(np.arange(512), seen)
    assert np.mean(np.sign(mean[unseen]) == values[unseen]) > 0.85


def test_what_was_not_seen_is_less_sure() -> None:
    one = task(line(60))
    seen = np.arange(20)
    _, deviation = surrogates.grow(one.table.part(np.repeat(seen, 5)), np.zeros(100), rng()).predict(
        one.table
    )
    assert deviation[:15].mean() < deviation[40:].mean()


def test_texts_and_missing_knobs_are_asked_about() -> None:
    spaces = (
        SearchSpace("s", (Knob("o", ("x", "y", "z")), Knob("a", (1, 2, 4)))),
        SearchSpace("t", (Knob("a", (1, 2, 4)),)),
    )
    table = RowTable.of(FeasibleSet.of(spaces))
    values = np.array([0, 0, 0, 2, 2, 2, 0, 0, 0, -1, -1, -1.0])
    mean, _ = surrogates.grow(table, values - values.mean(), rng()).predict(table)
    assert mean[3:6].min() > mean[[0, 1, 2, 6, 7, 8]].max()
    assert mean[9:].mean() < mean[[0, 1, 2, 6, 7, 8]].mean()


def test_answers_part_the_codes_of_the_column_asked_about() -> None:
    columns = (Column(3, True, False), Column(7, True, False))
    asked, results = _questions(columns, rng())
    levels = np.array([3, 7])[asked]
    for place, said in zip(levels.ravel(), results.reshape(-1, results.shape[-1]), strict=True):
        above = int(np.argmax(said[:place]))
        assert 1 <= above < place
        assert said[above:place].all()
        assert said[-1] == ((place - 1) / 2 > above - 1)


def test_equal_randomness_gives_equal_forests() -> None:
    square = task(grid("ab"))
    values = rng(2).normal(size=64)
    one, other = (surrogates.grow(square.table, values, rng(5)).predict(square.table) for _ in range(2))
    assert (one[0] == other[0]).all()


@pytest.mark.parametrize("count", [1, 2])
def test_a_table_without_columns_has_one_leaf(count: int) -> None:
    table = RowTable(np.zeros((count, 0), np.int16), ())
    mean, _ = surrogates.grow(table, np.ones(count), rng()).predict(table)
    assert mean == pytest.approx(count / (count + surrogates.SHRINKAGE))


def valley(task: SearchTask, row: int) -> float:
    a, b = (int(code) for code in task.table.codes[row])
    return 1.0 + (a - 5) ** 2 + 0.1 * b


def gain(task: SearchTask) -> np.ndarray:
    return Surrogate(task).log_gain(task.scope(np.random.default_rng(0)))


def given(rows: list[int]) -> SearchTask:
    square = task(grid("ab"))
    tell(square, *((row, valley(square, row)) for row in rows))
    return square


def test_the_gain_is_largest_in_the_valley() -> None:
    square = given([0, 9, 18, 27, 36, 60, 14, 5, 50, 33])
    best = np.argsort(-gain(square))[:5]
    assert all(square.table.codes[row][0] in (4, 5, 6) for row in best)


def test_what_a_power_of_two_divides_is_known_from_few_rows() -> None:
    steps = task(SearchSpace("s", (Knob("a", tuple(16 * rank for rank in range(1, 33))),)))
    tell(steps, *((row, 2.0 if row % 2 == 0 else 1.0 + row / 100) for row in (1, 4, 7, 10, 13, 16, 22, 25)))
    scope = steps.scope(np.random.default_rng(0))
    gains = Surrogate(steps).log_gain(scope)
    unseen_even, unseen_odd = [3, 5, 9, 11], [2, 6, 8, 12]  # rows: values are one more
    assert gains[unseen_even].mean() > gains[unseen_odd].mean() + 1


def test_pending_rows_are_not_chosen_next_to_it() -> None:
    free, busy = given([0, 9, 18, 27]), given([0, 9, 18, 27])
    best = int(np.argmax(gain(free)))
    busy.pool.propose(best)
    assert gain(busy)[best] < gain(free)[best] - 1


def test_the_order_of_reports_means_nothing_and_late_ones_are_heard() -> None:
    rows = [0, 9, 18, 27, 36, 60, 14, 5]
    early, late = given(rows), task(grid("ab"))
    for row in rows:
        late.pool.propose(row)
    surrogate = Surrogate(late)
    scope = late.scope(np.random.default_rng(0))
    for row in reversed(rows):
        surrogate.log_gain(scope)  # with less than all
        late.pool.tell(row, valley(late, row))
    assert (surrogate.log_gain(scope) == gain(early)).all()


def test_fits_come_less_and_less_often() -> None:
    fits = sorted({_fit_rows(count) for count in range(1, 300)})
    assert fits[:6] == [1, 2, 3, 4, 5, 6]
    assert all(after <= max(before + 1, before * FIT_GROWTH) for before, after in pairwise(fits))
    assert len(fits) < 40


EIGHT = tuple(range(8))


def tpe_grid(strategy: str, knobs: str = "abcd") -> SearchSpace:
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
    feasible = FeasibleSet.of((tpe_grid("s"),))
    best = {
        name: [min(time_s for _, time_s in search(name, feasible, seed, 60)) for seed in range(6)]
        for name in ("tpe", "random")
    }
    assert statistics.mean(best["tpe"]) < statistics.mean(best["random"]) - 0.3


@pytest.mark.slow
def test_it_settles_on_the_better_strategy() -> None:
    feasible = FeasibleSet.of((tpe_grid("s"), tpe_grid("t")))
    found = [search("tpe", feasible, seed, 30)[10:] for seed in range(3)]
    of_s = [feasible.candidate(row).strategy == "s" for rows in found for row, _ in rows]
    assert sum(of_s) >= 40  # of 60


def test_the_start_visits_every_strategy_however_small() -> None:
    feasible = FeasibleSet.of((tpe_grid("s"), tpe_grid("t", "abcd"), SearchSpace("u", (Knob("a", (1, 2)),))))
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


def test_most_choices_are_below_the_cliff() -> None:
    square = task(grid("abc"))
    rows = np.random.default_rng(0).permutation(512)[:80].tolist()
    low = square.table.codes.sum(axis=1) < 8
    tell(square, *((row, 1.0 + row / 1000 if low[row] else 9.0) for row in rows))
    chosen = [Trees(square).choose(np.random.default_rng(seed)) for seed in range(10)]
    assert sum(bool(low[row]) for row in chosen) >= 8
    assert all(square.pool.unseen[row] for row in chosen)
