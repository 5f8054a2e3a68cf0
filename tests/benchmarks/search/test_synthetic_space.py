"""Synthetic spaces of searches, and how well a model orders points."""

import numpy as np
import pytest

from benchmarks.search.ordering import ordering, rank_correlation
from benchmarks.search.replay_space import ReplaySpace
from benchmarks.search.synthetic_space import (
    NOISE,
    ROWS,
    SPREAD,
    STEPS_MIN,
    synthetic_space,
)


@pytest.fixture(scope="module")
def spaces() -> list[ReplaySpace]:
    return [synthetic_space(seed) for seed in range(12)]


@pytest.mark.slow
def test_spaces_have_interactions_and_reach_from_nearly_flat_to_steep(spaces: list[ReplaySpace]) -> None:
    for space in spaces:
        assert ROWS[0] <= space.feasible.rows <= ROWS[1]
        assert space.feasible.rows < 0.9 * space.feasible.cartesian
        assert np.isnan(space.times_s).mean() < 0.25
        assert space.steps >= STEPS_MIN
    spreads = [float(np.log(np.median(space.ordered_s) / space.ordered_s[0])) for space in spaces]
    assert all(SPREAD[0] < spread < SPREAD[1] + 5 * NOISE[1] for spread in spreads)
    assert min(spreads) < 0.3 < 0.7 < max(spreads)


@pytest.mark.slow
def test_the_best_of_most_have_twins_and_half_have_knobs_in_even_steps(spaces: list[ReplaySpace]) -> None:
    near = [float(space.ordered_s[4] / space.ordered_s[0]) for space in spaces]
    assert sum(share < 1.03 for share in near) > len(near) / 2
    assert max(near) > 1.03  # and a few are alone
    numbers = [
        [knob.choices for knob in space.feasible.spaces[0].knobs if not knob.is_text] for space in spaces
    ]
    stepped = [any(len(each) > 2 and each[2] == 3 * int(each[0]) for each in choices) for choices in numbers]
    assert sum(stepped) >= len(stepped) / 2


@pytest.mark.slow
def test_equal_seeds_give_equal_spaces_and_others_do_not(spaces: list[ReplaySpace]) -> None:
    one, again, other = spaces[3], synthetic_space(3), spaces[5]
    assert one.feasible.spaces == again.feasible.spaces != other.feasible.spaces
    assert np.array_equal(one.times_s, again.times_s, equal_nan=True)


TIMES_S = np.random.default_rng(1).permutation(np.arange(1.0, 201.0))


def fixed_rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_an_order_by_the_times_has_no_regret_and_random_points_are_as_good_as_their_expectation() -> None:
    found = ordering(3 * TIMES_S, TIMES_S, fixed_rng())
    assert found.rank_correlation == pytest.approx(1.0)
    assert found.regret == ((1, 0.0), (8, 0.0), (16, 0.0))
    assert found.is_accepted
    (_, one), (_, eight), _ = found.random_regret
    assert one == pytest.approx(99.5, rel=0.05)  # the mean of 1 to 200, less the optimum
    assert eight == pytest.approx(201 / 9 - 1, rel=0.1)


def test_an_order_the_other_way_round_and_a_lucky_first_point_are_not_accepted() -> None:
    found = ordering(-TIMES_S, TIMES_S, fixed_rng())
    assert found.rank_correlation == pytest.approx(-1.0)
    assert found.regret[1] == (8, 192.0)  # the best of the eight slowest takes 193 s, the optimum 1 s
    assert found.beats_random == 0.0
    assert not found.is_accepted
    costs = fixed_rng().permutation(np.arange(200.0))
    costs[TIMES_S.argmin()] = -1.0
    lucky = ordering(costs, TIMES_S, fixed_rng())
    assert lucky.regret[0] == (1, 0.0)
    assert not lucky.is_accepted


def test_points_that_failed_or_have_no_prediction_count_not_and_equal_predictions_share_their_rank() -> None:
    times, costs = TIMES_S.copy(), TIMES_S.copy()
    times[:10], costs[10:30] = np.nan, np.inf
    assert ordering(costs, times, fixed_rng()).points == 170
    tied = rank_correlation(np.array([1.0, 1.0, 2.0]), np.array([1.0, 2.0, 3.0]))
    assert tied == pytest.approx(0.866, abs=1e-3)
