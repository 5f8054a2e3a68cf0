import numpy as np
import pytest

from tuner.analysis.time_matrix import SHRINKAGE, WIDTH, KnownTimes, Numbers, corrected_scores, filled_costs

NAN = np.nan


def numbers(*rows: object) -> Numbers:
    return np.array(rows, np.float64)


OCTAVES = numbers([7, 8, 9], [7, 8, 9], [9, 8, 9])
COSTS = numbers([10, 20, 40], [10, 20, 40], [10, 20, 40])


def known(*times: object) -> KnownTimes:
    return KnownTimes(COSTS[: len(times)], numbers(*times), OCTAVES[: len(times)])


def test_without_times_the_order_is_that_of_the_cost_model() -> None:
    nothing = KnownTimes(np.empty((0, 3)), np.empty((0, 3)), np.empty((0, 3)))
    assert corrected_scores(nothing, COSTS[0], OCTAVES[0]) == pytest.approx(np.log(COSTS[0]))


def test_a_configuration_that_beat_the_model_on_the_same_sizes_is_preferred() -> None:
    # the second column took a third of what the model says
    scores = corrected_scores(known([3.0, 2.0, 12.0]), COSTS[0], OCTAVES[0])
    assert np.argsort(scores).tolist() == [1, 0, 2]


def test_the_score_is_the_shrunken_mean_of_residuals_by_distance() -> None:
    found = corrected_scores(known([10.0, 40.0, NAN], [NAN, NAN, NAN], [10.0, 20.0, 80.0]), *asked())
    near, far = 1.0, np.exp(-4 / WIDTH)
    first = (near * -np.log(2) / 2 + far * -np.log(2) / 3) / (SHRINKAGE + near + far)
    second = (near * np.log(2) / 2 + far * -np.log(2) / 3) / (SHRINKAGE + near + far)
    third = far * np.log(2) * 2 / 3 / (SHRINKAGE + far)
    assert found == pytest.approx(np.log(COSTS[0]) + numbers(first, second, third))


def asked() -> tuple[Numbers, Numbers]:
    return COSTS[0], OCTAVES[0]


def test_that_a_whole_problem_is_slower_than_the_model_says_changes_nothing() -> None:
    assert corrected_scores(known([1e3, 2e3, 4e3]), *asked()) == pytest.approx(np.log(COSTS[0]))


def test_a_problem_with_one_time_says_nothing() -> None:
    assert corrected_scores(known([NAN, 1.0, NAN]), *asked()) == pytest.approx(np.log(COSTS[0]))


def test_what_has_no_model_counts_as_the_cheapest_of_the_problem() -> None:
    costs = numbers([np.inf, 20, 40], [np.inf, np.inf, np.inf])
    assert filled_costs(costs).tolist() == [[20, 20, 40], [1, 1, 1]]
    assert filled_costs(np.empty((2, 0))).shape == (2, 0)
    scores = corrected_scores(
        KnownTimes(costs, numbers([1, 1, 2], [NAN] * 3), OCTAVES[:2]), costs[0], asked()[1]
    )
    assert np.isfinite(scores).all()
