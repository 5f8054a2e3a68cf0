import numpy as np
import pytest

from benchmarks.search.replay_space import ReplaySpace
from benchmarks.search.tree_rivals import (
    RIVALS,
    START_ROWS,
    _features,
    _logs,
    is_installed,
    replay_tree_rival,
)
from tuner.space.feasible_set import FeasibleSet
from tuner.space.search_space import Knob, SearchSpace

NUMBERS = tuple(range(12))


def valley() -> ReplaySpace:
    knobs = (Knob("tile", NUMBERS), Knob("depth", NUMBERS), Knob("order", ("mn", "nm")))
    feasible = FeasibleSet.of((SearchSpace("s", knobs),))
    times_s = [
        1e-3 * (2 + (tile - 8) ** 2 + (depth - 3) ** 2 + (order == "nm"))
        for tile in NUMBERS
        for depth in NUMBERS
        for order in ("mn", "nm")
    ]
    times_s[5] = np.nan
    return ReplaySpace("valley", feasible, np.array(times_s))


def test_trees_see_the_values_of_numbers_and_the_ranks_of_texts() -> None:
    columns = _features(valley())
    assert columns[-1].tolist()[-3:] == [11, 11, 1]


def test_failures_count_as_the_slowest() -> None:
    assert _logs(np.array([1.0, np.nan, np.e])).tolist() == [0, 1, 1]


@pytest.mark.skipif(not is_installed(), reason="needs scikit-learn")
@pytest.mark.parametrize("rival", RIVALS)
def test_a_rival_finds_the_valley_and_tries_no_row_twice(rival: str) -> None:
    space = valley()
    done = replay_tree_rival(space, rival, seed=0, evaluations=60)
    assert done.found_s[-1] < done.found_s[START_ROWS] < 0.1
    assert done.found_s[-1] <= space.ordered_s[10]
    assert len(done.found_s) == done.evaluations == 60
