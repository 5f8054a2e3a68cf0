import argparse

import numpy as np
import pytest

from benchmarks.search.warm_start import STARTS, _is_good, _settings, _starts, _trials
from tests.benchmarks.search.test_replay_space import SHIPPED
from tuner.core.runs import SEED, WARM_START, InitialConfiguration
from tuner.space.recorded.reading import read_recorded

SPACE = read_recorded(SHIPPED)
BEST_ROW, WORST_ROW = int(np.nanargmin(SPACE.times_s)), int(np.nanargmax(SPACE.times_s))


def trials(first: tuple[int, ...], limit: int) -> int:
    options = argparse.Namespace(sampler="random", trials=limit)
    points = tuple(InitialConfiguration(SPACE.feasible.candidate(row), SEED) for row in first)
    return _trials(_settings(SHIPPED, SPACE, options), points, SPACE, 0, 1.0)


@pytest.mark.parametrize("first", [(BEST_ROW,), (WORST_ROW, BEST_ROW)])
def test_a_search_ends_with_the_first_trial_that_is_good(first: tuple[int, ...]) -> None:
    assert trials(first, 40) == len(first)


def test_a_search_that_finds_nothing_good_needs_more_than_its_budget() -> None:
    assert trials((WORST_ROW,), 1) == 2


def test_a_search_begins_with_known_points_interleaved_with_seed_rows_or_with_one_of_both() -> None:
    settings = _settings(SHIPPED, SPACE, argparse.Namespace(sampler="random", trials=1))
    starts = _starts(SPACE, settings, (SHIPPED,))
    assert tuple(starts) == STARTS
    assert {point.origin for point in starts["warm"]} == {WARM_START}
    assert starts["warm"][0].candidate == SPACE.feasible.candidate(BEST_ROW)
    assert {point.origin for point in starts["seeded"]} == {SEED}
    assert [point.candidate for point in starts["both"][:2]] == [
        starts["warm"][0].candidate,
        starts["seeded"][0].candidate,
    ]
    assert starts["cold"] == ()


def test_good_is_within_a_share_of_the_optimum_and_failures_are_not() -> None:
    space = read_recorded(SHIPPED)
    best = float(np.nanmin(space.times_s))
    assert _is_good(np.array([best, best / 0.97, best / 0.9, np.nan]), space, 0.96).tolist() == [1, 1, 0, 0]
