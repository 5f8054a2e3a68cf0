import numpy as np
import pytest

from benchmarks.search.replay_run import replay
from benchmarks.search.replay_space import ReplaySpace
from tests.samplers.tasks import line
from tuner.space.feasible_set import FeasibleSet


def test_the_best_so_far_is_kept_and_a_failure_is_an_evaluation() -> None:
    times = np.array([np.nan, 3.0, 5.0, np.nan, 2.0])
    space = ReplaySpace("s", FeasibleSet.of((line(5),)), times)
    done = replay(space, "exhaustive", seed=0, evaluations=9)
    assert done.found_s == pytest.approx([np.inf, 3, 3, 3, 2])
    assert done.evaluations == done.asks == 5
    assert done.ask_s > 0
