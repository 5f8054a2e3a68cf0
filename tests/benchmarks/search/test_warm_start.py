import argparse

import numpy as np
import pytest

from benchmarks.search.warm_start import _is_good, _seeded_trials
from tests.benchmarks.search.test_replay_space import SHIPPED
from tuner.recorded.reading import read_recorded


@pytest.mark.parametrize("share", [0.5, 0.8])
def test_a_seeded_search_counts_trials_to_the_first_that_is_good(share: float) -> None:
    space = read_recorded(SHIPPED)
    words = argparse.Namespace(sampler="random", trials=40, share=share)
    trials = _seeded_trials(space, 0, words)
    assert 1 <= trials <= 40
    assert _seeded_trials(space, 0, argparse.Namespace(**{**vars(words), "share": 0.01})) == 1


def test_a_search_that_finds_nothing_good_needs_more_than_its_budget() -> None:
    words = argparse.Namespace(sampler="random", trials=1, share=1.0)
    assert _seeded_trials(read_recorded(SHIPPED), 0, words) == 2


def test_good_is_within_a_share_of_the_optimum_and_failures_are_not() -> None:
    space = read_recorded(SHIPPED)
    best = float(np.nanmin(space.times_s))
    assert _is_good(np.array([best, best / 0.97, best / 0.9, np.nan]), space, 0.96).tolist() == [1, 1, 0, 0]
