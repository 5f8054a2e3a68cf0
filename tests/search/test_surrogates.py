"""Surrogates of the TPE-like samplers: forests of trees, and densities of fast and slow rows."""

import math
import statistics
from itertools import pairwise

import numpy as np
import pytest

from tests.search.tasks import ask, grid, line, rng, task, tell
from tuner.search.configurations import Column, RowTable, Scope
from tuner.search.method import SearchTask
from tuner.search.samplers import make_sampler
from tuner.search.surrogates import (
    FIT_GROWTH,
    GOOD_MIN,
    PRIOR,
    SHRINKAGE,
    Densities,
    KernelDensityTable,
    Surrogate,
    Trees,
    _fit_rows,
    _random_splits,
    grow,
    log_expected_improvement,
)
from tuner.space.feasible_set import FeasibleSet
from tuner.space.search_space import Knob, SearchSpace


@pytest.mark.parametrize(("mean", "deviation"), [(0.0, 1.0), (1.0, 0.5), (-1.0, 2.0), (2.0, 1.0)])
def test_it_is_the_mean_gain_of_normal_values(mean: float, deviation: float) -> None:
    gain = float(np.maximum(0.2 - rng().normal(mean, deviation, 400_000), 0).mean())
    given = log_expected_improvement(np.array([mean], np.float32), np.array([deviation], np.float32), 0.2)
    assert math.exp(given[0]) == pytest.approx(gain, rel=0.03)


def test_a_lower_mean_or_a_larger_deviation_gains_more_and_no_chance_is_a_number() -> None:
    mean, deviation = np.array([0, 1, 1, 50], np.float32), np.array([1, 1, 2, 1e-3], np.float32)
    gain = log_expected_improvement(mean, deviation, 0.0)
    assert gain[0] > gain[1] < gain[2]
    assert np.isfinite(gain).all()


def test_a_forest_learns_a_cliff_asks_about_texts_and_missing_knobs_and_is_equal_for_a_seed() -> None:
    square = task(grid("abc"))
    values = np.where(square.table.codes[:, 0] + square.table.codes[:, 1] > 8, 1.0, -1.0)
    seen = rng(1).permutation(512)[:150]
    mean, _ = grow(square.table.part(seen), values[seen], rng()).predict(square.table)
    unseen = np.setdiff1d(np.arange(512), seen)
    assert np.mean(np.sign(mean[unseen]) == values[unseen]) > 0.85
    one = task(line(60))
    forest = grow(one.table.part(np.repeat(np.arange(20), 5)), np.zeros(100), rng())
    _, deviation = forest.predict(one.table)
    assert deviation[:15].mean() < deviation[40:].mean()
    a, o = Knob("a", (1, 2, 4)), Knob("o", ("x", "y", "z"))
    table = RowTable.of(FeasibleSet.of((SearchSpace("s", (o, a)), SearchSpace("t", (a,)))))
    values = np.array([0, 0, 0, 2, 2, 2, 0, 0, 0, -1, -1, -1.0])
    mean, _ = grow(table, values - values.mean(), rng()).predict(table)
    assert mean[3:6].min() > mean[[0, 1, 2, 6, 7, 8]].max()
    assert mean[9:].mean() < mean[[0, 1, 2, 6, 7, 8]].mean()
    asked, results = _random_splits((Column(3, True, False), Column(7, True, False)), rng())
    levels = np.array([3, 7])[asked]
    for place, said in zip(levels.ravel(), results.reshape(-1, results.shape[-1]), strict=True):
        above = int(np.argmax(said[:place]))
        assert 1 <= above < place
        assert said[above:place].all()
        assert said[-1] == ((place - 1) / 2 > above - 1)
    square = task(grid("ab"))
    values = rng(2).normal(size=64)
    first, second = (grow(square.table, values, rng(5)).predict(square.table) for _ in range(2))
    assert (first[0] == second[0]).all()
    for count in (1, 2):
        table = RowTable(np.zeros((count, 0), np.int16), ())
        mean, _ = grow(table, np.ones(count), rng()).predict(table)
        assert mean == pytest.approx(count / (count + SHRINKAGE))


def valley(task: SearchTask, row: int) -> float:
    a, b = (int(code) for code in task.table.codes[row])
    return 1.0 + (a - 5) ** 2 + 0.1 * b


def gain(task: SearchTask) -> np.ndarray:
    return Surrogate(task).log_gain(task.scope(rng()))


def given(rows: list[int]) -> SearchTask:
    square = task(grid("ab"))
    tell(square, *((row, valley(square, row)) for row in rows))
    return square


def test_the_gain_is_largest_in_the_valley_and_knows_what_a_power_of_two_divides() -> None:
    square = given([0, 9, 18, 27, 36, 60, 14, 5, 50, 33])
    assert all(square.table.codes[row][0] in (4, 5, 6) for row in np.argsort(-gain(square))[:5])
    free, busy = given([0, 9, 18, 27]), given([0, 9, 18, 27])
    best = int(np.argmax(gain(free)))
    busy.pool.propose(best)
    assert gain(busy)[best] < gain(free)[best] - 1
    steps = task(SearchSpace("s", (Knob("a", tuple(16 * rank for rank in range(1, 33))),)))
    tell(steps, *((row, 2.0 if row % 2 == 0 else 1.0 + row / 100) for row in (1, 4, 7, 10, 13, 16, 22, 25)))
    gains = Surrogate(steps).log_gain(steps.scope(rng()))
    unseen_even, unseen_odd = [3, 5, 9, 11], [2, 6, 8, 12]  # rows: values are one more
    assert gains[unseen_even].mean() > gains[unseen_odd].mean() + 1


def test_the_order_of_reports_means_nothing_and_fits_come_less_and_less_often() -> None:
    rows = [0, 9, 18, 27, 36, 60, 14, 5]
    early, late = given(rows), task(grid("ab"))
    for row in rows:
        late.pool.propose(row)
    surrogate = Surrogate(late)
    scope = late.scope(rng())
    for row in reversed(rows):
        surrogate.log_gain(scope)  # with less than all
        late.pool.tell(row, valley(late, row))
    assert (surrogate.log_gain(scope) == gain(early)).all()
    fits = sorted({_fit_rows(count) for count in range(1, 300)})
    assert fits[:6] == [1, 2, 3, 4, 5, 6]
    assert all(after <= max(before + 1, before * FIT_GROWTH) for before, after in pairwise(fits))
    assert len(fits) < 40


def search(name: str, feasible: FeasibleSet, seed: int, trials: int) -> list[tuple[int, float]]:
    """Searches a valley whose knobs interact; strategy "t" is slower everywhere."""
    sampler = make_sampler(name, feasible, seed)
    found = []
    for number in range(trials):
        row = ask(sampler, number)
        chosen = feasible.candidate(row)
        a, b, c, d = (int(dict(chosen.choices)[knob]) for knob in "abcd")
        slower = 5 if chosen.strategy == "t" else 0
        found.append((row, 1.0 + slower + abs(a - b) + (c - 5) ** 2 / 4 + abs(a + d - 9)))
        sampler.tell(*found[-1])
    return found


@pytest.mark.slow
def test_it_finds_better_rows_than_random_and_settles_on_the_better_strategy() -> None:
    feasible = FeasibleSet.of((grid("abcd"),))
    best = {
        name: [min(time_s for _, time_s in search(name, feasible, seed, 60)) for seed in range(6)]
        for name in ("tpe", "random")
    }
    assert statistics.mean(best["tpe"]) < statistics.mean(best["random"]) - 0.3
    feasible = FeasibleSet.of((grid("abcd"), grid("abcd", name="t")))
    found = [search("tpe", feasible, seed, 30)[10:] for seed in range(3)]
    of_s = [feasible.candidate(row).strategy == "s" for rows in found for row, _ in rows]
    assert sum(of_s) >= 40  # of 60


@pytest.mark.slow
@pytest.mark.parametrize("is_reported", [False, True])
def test_rows_in_flight_and_failures_keep_the_next_ask_away(is_reported: bool) -> None:
    odd = tuple(range(1, 200, 2))  # of one alignment: near is near in value alone
    feasible = FeasibleSet.of((SearchSpace("s", (Knob("a", odd),)),))
    gaps = []
    for seed in range(20):
        sampler = make_sampler("tpe", feasible, seed)
        rows = [ask(sampler, number) for number in range(10)]
        for row in rows if is_reported else ():
            sampler.tell(row, None)
        chosen = ask(sampler, 10)
        gaps.append(min(abs(chosen - row) for row in rows))
    assert sum(gap >= 5 for gap in gaps) >= 17  # without the lie: about half


def test_a_time_of_zero_is_the_fastest_not_a_failure() -> None:
    feasible = FeasibleSet.of((SearchSpace("s", (Knob("a", tuple(range(100))),)),))
    near = []
    for fastest in (0.0, None):
        sampler = make_sampler("tpe", feasible, 0, first=(25,))
        rows = []
        for number in range(20):
            rows.append(ask(sampler, number))
            sampler.tell(rows[-1], fastest if 20 <= rows[-1] < 30 else 1.0)
        near.append(sum(15 <= row < 35 for row in rows))
    assert near[0] > near[1]


def test_most_choices_are_below_the_cliff_where_the_ratio_is_largest() -> None:
    square = task(grid("abc"))
    rows = rng().permutation(512)[:80].tolist()
    low = square.table.codes.sum(axis=1) < 8
    tell(square, *((row, 1.0 + row / 1000 if low[row] else 9.0) for row in rows))
    chosen = [Trees(square).choose(rng(seed)) for seed in range(10)]
    assert sum(low[chosen]) >= 8
    assert all(square.pool.unseen[chosen])
    one = task(line(40))
    tell(one, (10, 1.0), (11, 1.1), (30, 5.0), (31, 6.0), (5, 7.0))
    gain = Densities(one).log_gain(one.scope(rng()))
    assert int(np.argmax(gain)) in (9, 10, 11, 12)
    assert int(np.argmin(gain)) in (30, 31)
    one = task(line(40))
    tell(one, (10, None))
    one.pool.propose(30)
    gain = Densities(one).log_gain(one.scope(rng()))
    assert gain[20] > max(gain[10], gain[30])


def test_the_sums_are_the_same_as_if_made_at_once_by_a_kernel_that_is_a_density() -> None:
    """Rows become good and stop being so; integers forget nothing."""
    square = task(grid("ab"))
    kept = Densities(square)
    scope = square.scope(rng())
    for number, row in enumerate(rng(1).permutation(64)[:30].tolist()):
        tell(square, (row, float((row * 29) % 64)))
        assert (kept.log_gain(scope) == Densities(square).log_gain(scope)).all(), number
    assert GOOD_MIN == 2
    rows = np.array([1, 3, 40, 63])
    part = Densities(square).log_gain(Scope(rows, square.table.part(rows), is_whole=False))
    assert (part == kept.log_gain(scope)[rows]).all()
    density = around(FeasibleSet.of((grid("abcd"),)), 123)
    assert abs(float(density.mean()) / PRIOR - 1) < 0.01
    assert int(np.argmax(density)) == 123
    feasible = FeasibleSet.of((SearchSpace("s", (Knob("a", (1, 2, 8)), Knob("o", ("x", "y", "z")))),))
    density = around(feasible, 0).reshape(3, 3)
    assert density[0, 0] > density[1, 0] > density[2, 0]
    assert density[0, 0] > density[0, 1] == density[0, 2]
    a, b = Knob("a", (1, 2)), Knob("b", (1, 2))
    density = around(FeasibleSet.of((SearchSpace("s", (a,)), SearchSpace("t", (a, b)))), 0)  # s(a=1)
    assert density[0] > density[1] > density[2] > density[4]
    assert density[2] == density[3]


def around(feasible: FeasibleSet, row: int) -> np.ndarray:
    table = RowTable.of(feasible)
    return KernelDensityTable(table).around(table.codes[row])
