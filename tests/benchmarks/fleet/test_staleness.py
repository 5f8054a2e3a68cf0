import numpy as np
import pytest

from benchmarks.fleet.staleness import PENDING, staleness_rows, trials_until
from benchmarks.search.replay_run import ReplayedSearch
from benchmarks.search.replay_space import ReplaySpace
from tests.search.tasks import line
from tuner.space.feasible_set import FeasibleSet

TIMES = np.linspace(2.0, 1.0, 40)
SPACE = ReplaySpace("s", FeasibleSet.of((line(40),)), TIMES)


@pytest.mark.parametrize(
    ("found_s", "trials"), [([2.0, 1.06, 1.05, 1.0], 3), ([1.0], 1), ([np.inf, 1.2], np.inf)]
)
def test_a_search_has_arrived_at_95_percent_of_the_optimum_s_speed(
    found_s: list[float], trials: float
) -> None:
    found = ReplayedSearch(np.array(found_s), len(found_s), len(found_s), 0.0)
    assert trials_until(SPACE, found) == trials


def test_there_is_a_row_for_each_limit_and_an_order_without_outcomes_does_not_mind() -> None:
    rows = list(staleness_rows(SPACE, "exhaustive", evaluations=40, seeds=2))
    assert [row["pending"] for row in rows] == list(PENDING)
    assert {row["p"] for row in rows} == {rows[0]["p"]}
    assert {(row["median_trials"], row["arrived"], row["p_standard_error"]) for row in rows} == {(38, 2, 0)}


def test_a_search_that_does_not_arrive_has_no_number_of_trials() -> None:
    row = next(staleness_rows(SPACE, "exhaustive", evaluations=5, seeds=1))
    assert (row["median_trials"], row["arrived"], row["p_standard_error"]) == (None, 0, None)
