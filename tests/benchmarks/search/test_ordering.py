import numpy as np
import pytest

from benchmarks.search.ordering import ordering, rank_correlation

TIMES_S = np.random.default_rng(1).permutation(np.arange(1.0, 201.0))


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_an_order_by_the_times_themselves_has_no_regret_and_is_accepted() -> None:
    found = ordering(3 * TIMES_S, TIMES_S, rng())
    assert found.rank_correlation == pytest.approx(1.0)
    assert found.regret == ((1, 0.0), (8, 0.0), (16, 0.0))
    assert found.is_accepted


def test_an_order_the_other_way_round_is_not_accepted() -> None:
    found = ordering(-TIMES_S, TIMES_S, rng())
    assert found.rank_correlation == pytest.approx(-1.0)
    assert found.regret[1] == (8, 192.0)  # the best of the eight slowest takes 193 s, the optimum 1 s
    assert found.beats_random == 0.0
    assert not found.is_accepted


def test_a_lucky_first_point_is_not_enough() -> None:
    costs = rng().permutation(np.arange(200.0))
    costs[TIMES_S.argmin()] = -1.0
    found = ordering(costs, TIMES_S, rng())
    assert found.regret[0] == (1, 0.0)
    assert not found.is_accepted


def test_points_that_failed_or_have_no_prediction_count_not() -> None:
    times, costs = TIMES_S.copy(), TIMES_S.copy()
    times[:10], costs[10:30] = np.nan, np.inf
    assert ordering(costs, times, rng()).points == 170


def test_random_points_are_as_good_as_their_expectation() -> None:
    found = ordering(TIMES_S, TIMES_S, rng())
    (_, one), (_, eight), _ = found.random_regret
    assert one == pytest.approx(99.5, rel=0.05)  # the mean of 1 to 200, less the optimum
    assert eight == pytest.approx(201 / 9 - 1, rel=0.1)


def test_equal_predictions_share_their_rank() -> None:
    assert rank_correlation(np.array([1.0, 1.0, 2.0]), np.array([1.0, 2.0, 3.0])) == pytest.approx(
        0.866, abs=1e-3
    )
