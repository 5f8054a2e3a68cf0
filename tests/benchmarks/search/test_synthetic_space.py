import numpy as np
import pytest

from benchmarks.search.replay_space import ReplaySpace
from benchmarks.search.synthetic_space import (
    NOISE,
    ROWS,
    SPREAD,
    STEPS_MIN,
    _excess,
    _misaligned,
    _rounded_up,
    synthetic_space,
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def spaces() -> list[ReplaySpace]:
    return [synthetic_space(seed) for seed in range(12)]


def test_spaces_have_interactions_and_a_time_for_most_rows(spaces: list[ReplaySpace]) -> None:
    for space in spaces:
        assert ROWS[0] <= space.feasible.rows <= ROWS[1]
        assert space.feasible.rows < 0.9 * space.feasible.cartesian
        assert np.isnan(space.times_s).mean() < 0.25
        assert space.steps >= STEPS_MIN


def test_they_reach_from_nearly_flat_to_steep(spaces: list[ReplaySpace]) -> None:
    spreads = [float(np.log(np.median(space.ordered_s) / space.ordered_s[0])) for space in spaces]
    assert all(SPREAD[0] < spread < SPREAD[1] + 5 * NOISE[1] for spread in spreads)
    assert min(spreads) < 0.3 < 0.7 < max(spreads)


def test_the_best_of_most_have_twins(spaces: list[ReplaySpace]) -> None:
    near = [float(space.ordered_s[4] / space.ordered_s[0]) for space in spaces]
    assert sum(share < 1.03 for share in near) > len(near) / 2
    assert max(near) > 1.03  # and a few are alone


def test_half_have_knobs_in_even_steps(spaces: list[ReplaySpace]) -> None:
    stepped = [
        any(len(knob.choices) > 2 and knob.choices[2] == 3 * int(knob.choices[0]) for knob in knobs)
        for knobs in (
            [knob for knob in space.feasible.spaces[0].knobs if not knob.is_text] for space in spaces
        )
    ]
    assert sum(stepped) >= len(stepped) / 2


def test_what_no_power_of_two_divides_costs_more_or_the_same() -> None:
    times_two_divides = np.arange(5.0)
    costs = [
        _misaligned(
            np.zeros((5, 1)), {0: times_two_divides}, np.array([], np.intp), np.random.default_rng(seed)
        )
        for seed in range(10)
    ]
    assert all((np.diff(cost) <= 0).all() and cost[-1] == 0 for cost in costs)
    assert sum(cost[0] > 0 for cost in costs) > len(costs) / 2


def test_equal_seeds_give_equal_spaces_and_others_do_not(spaces: list[ReplaySpace]) -> None:
    one, again, other = spaces[3], synthetic_space(3), spaces[5]
    assert one.feasible.spaces == again.feasible.spaces != other.feasible.spaces
    assert np.array_equal(one.times_s, again.times_s, equal_nan=True)


def test_whole_units_cost_what_they_leave_unused() -> None:
    assert _excess(np.array([16.0, 32.0, 48.0, 100.0]), 32.0).tolist() == [2, 1, 4 / 3, 1.28]
    numbers = np.array([[16.0], [32.0], [48.0], [64.0]])
    costs = np.array([_rounded_up(numbers, np.random.default_rng(seed)) for seed in range(20)])
    assert (costs >= 0).all()
    assert (costs.max(axis=1) > 0.02).sum() > 10
    assert not _rounded_up(np.zeros((3, 0)), np.random.default_rng(0)).any()
