import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analysis.matrices import instance
from tests.results.report.values import with_candidate
from tests.trials import measurement, trial
from tuner.analysis.importance import Ablation, Gain, TooFew, ablate, importances
from tuner.core.candidate import Value
from tuner.core.errors import Failure, Stage
from tuner.core.records import Measurement
from tuner.core.trials import StoredTrial

WRONG = Failure(Stage.VERIFY, "wrong")


def of(number: int, strategy: str, knobs: dict[str, Value], outcome: Measurement | Failure) -> StoredTrial:
    return with_candidate(trial(number, outcome), strategy, knobs)


def grid() -> tuple[StoredTrial, ...]:
    """Returns 32 trials: time is 1 ms times tile (8 is the best, 1 the first) plus 10 % for order nm."""
    trials: list[StoredTrial] = []
    for tile, order, idle in reversed([*itertools.product((8, 4, 2, 1), ("mn", "nm"), (0, 1, 2, 3))]):
        timed = measurement(8e-3 / tile * (1.1 if order == "nm" else 1), 0.02)
        trials.append(of(len(trials), "s", {"tile": tile, "order": order, "idle": idle, "same": 1}, timed))
    return tuple(trials)


def ablated(trials: tuple[StoredTrial, ...]) -> Ablation:
    return instance(Ablation, ablate(trials))


def test_a_gain_is_what_holding_a_knob_where_the_search_began_costs() -> None:
    tile, order, idle = ablated(grid()).knobs
    assert (tile.knob, tile.held, tile.best) == ("tile", 1, 8)
    assert (order.knob, order.held, order.best) == ("order", "nm", "mn")
    assert idle.knob == "idle"
    assert tile.importance > order.importance > idle.importance
    of_tile, of_order, of_idle = (instance(Gain, knob.gain) for knob in (tile, order, idle))
    assert (of_tile.trials, of_tile.slower) == pytest.approx((8, 7))
    assert of_tile.interval == pytest.approx((8 * 0.99 / 1.01 - 1, 8 * 1.01 / 0.99 - 1))
    assert of_tile.chance == pytest.approx(1 / 10_518_300)  # the 8 slowest of 32
    assert of_order.slower == pytest.approx(0.1)
    assert of_idle.slower == pytest.approx(0)
    assert of_idle.chance == 1
    for knob, slower, trials in ((tile, 1, 24), (order, 0.1, 16), (idle, 0, 24)):
        without_best = instance(Gain, knob.without_best)
        assert (without_best.slower, without_best.trials) == pytest.approx((slower, trials))


def test_a_value_held_at_the_best_or_as_fast_gains_nothing_and_by_too_few_trials_has_no_figure() -> None:
    renumbered = tuple(replace(each, number=number) for number, each in enumerate(grid()[::-1]))
    tile = next(each for each in ablated(renumbered).knobs if each.knob == "tile")
    gain = instance(Gain, tile.gain)
    assert (gain.slower, gain.interval, gain.chance) == (0.0, (0.0, 0.0), 1.0)
    assert instance(Gain, tile.without_best).slower == pytest.approx(1)
    lone = of(0, "s", {"tile": 64, "order": "mn", "idle": 0, "same": 1}, measurement(9e-3))
    later = tuple(replace(each, number=each.number + 1) for each in grid())
    tile = next(each for each in ablated((lone, *later)).knobs if each.knob == "tile")
    assert (tile.held, tile.gain) == (64, None)
    assert tile.without_best is not None
    tiles = [1] + [8] * 20 + [1] * 3
    times = [measurement(2e-3, 0.02)] + [measurement(1e-3, 0.02)] * 23
    trials = tuple(of(number, "s", {"tile": tiles[number]}, time) for number, time in enumerate(times))
    (tile,) = ablated(trials).knobs
    for each in (tile.gain, tile.without_best):
        gain = instance(Gain, each)
        assert (gain.slower, gain.trials, gain.chance) == (0.0, 4, 1.0)


def test_strategies_are_compared_by_their_best_and_too_few_or_stale_trials_left_out() -> None:
    others = (
        of(50, "t", {"x": 1}, measurement(1.5e-3, 0.1)),
        of(51, "t", {"x": 2}, WRONG),
        of(52, "u", {"y": 1}, WRONG),
        of(53, "t", {"x": 3}, measurement(1.6e-3)),
        of(54, "t", {"x": 4}, measurement(1.6e-3)),
        of(55, "v", {"y": 1}, measurement(5e-3)),
    )
    first, second, third, fourth = ablated((*grid(), *others)).strategies
    assert (first.strategy, first.trials, first.failed) == ("s", 32, 0)
    assert first.best_s == pytest.approx(1e-3)
    assert (second.strategy, second.trials, second.failed) == ("t", 4, 1)
    gain = instance(Gain, second.gain)
    assert (gain.trials, gain.slower) == pytest.approx((3, 0.5))
    assert gain.interval == pytest.approx((1.425 / 1.01 - 1, 1.575 / 0.99 - 1))
    assert (third.strategy, third.best_s, third.gain) == ("v", 5e-3, None)  # one trial is too few
    assert (fourth.strategy, fourth.failed, fourth.best_s, fourth.gain) == ("u", 1, None, None)
    for count, of_strategy in ((0, ""), (19, " of s")):
        found = instance(TooFew, ablate((*grid()[:count], trial(90, WRONG))))
        assert found.reason == f"ablation: found {count} measured trials{of_strategy}, it needs 20 or more"
    stale = replace(grid()[0], stale="the code is another one now")
    assert ablated((stale, *grid()[1:])).measured == ablated(grid()).measured - 1


@pytest.mark.slow
def test_a_knob_without_effect_shows_by_chance_as_often_as_told() -> None:
    rng = np.random.default_rng(0)
    chances = []
    for _ in range(300):
        times = [measurement(1e-3 * (1 + time)) for time in rng.permutation(40)]
        trials = (of(n, "s", {"x": int(rng.integers(4))}, time) for n, time in enumerate(times))
        (knob,) = ablated(tuple(trials)).knobs
        chances.append([gain.chance for gain in (knob.gain, knob.without_best) if gain is not None])
    for kind in (0, 1):
        of_kind = np.array([each[kind] for each in chances if len(each) == 2])
        for level in (0.05, 0.2, 0.5):
            assert np.mean(of_kind <= level) < level + 0.06


GRID = itertools.product(range(8), range(4), "xy")
POINTS: list[dict[str, Value]] = [{"a": a, "b": b, "c": c, "fixed": 1} for a, b, c in GRID]


def ped_anova_of(point: dict[str, Value]) -> float:
    return 1 + float(point["a"]) + 0.1 * float(point["b"])


def test_the_knob_that_decides_counts_most_and_one_without_effect_least() -> None:
    found = importances(POINTS, [ped_anova_of(point) for point in POINTS])
    assert list(found) == ["a", "b", "c", "fixed"]
    assert found["a"] > 0.7
    assert found["a"] > found["b"] > found["c"] > found["fixed"] == 0
    assert importances([], []) == {}
    assert importances([{"a": 1}] * 8, [1.0] * 8) == {"a": 0.0}


@given(st.permutations(POINTS))
def test_the_order_of_points_means_nothing_where_times_differ(points: list[dict[str, Value]]) -> None:
    def unlike(point: dict[str, Value]) -> float:
        return ped_anova_of(point) + (0.01 if point["c"] == "x" else 0)

    expected = importances(POINTS, [unlike(point) for point in POINTS])
    assert importances(points, [unlike(point) for point in points]) == pytest.approx(expected)


@given(st.lists(st.floats(0.1, 10), min_size=len(POINTS), max_size=len(POINTS)))
def test_shares_add_up_to_one(times_s: list[float]) -> None:
    found = importances(POINTS, times_s)
    assert sum(found.values()) == pytest.approx(1)
    assert min(found.values()) >= 0
