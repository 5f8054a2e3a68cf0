import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.search.replay_space import ReplaySpace
from tests.search.tasks import line
from tuner.core.errors import UsageError
from tuner.space.feasible_set import FeasibleSet

SHIPPED = Path(__file__).parents[3] / "tuner" / "space" / "recorded" / "matmul_48x64x40.t4.json.gz"


def space(*times_s: float) -> ReplaySpace:
    return ReplaySpace("s", FeasibleSet.of((line(len(times_s)),)), np.array(times_s))


def test_random_search_is_the_mean_over_all_draws() -> None:
    times = (5.0, 1.0, 2.0, 9.0, 2.0)
    random_s = space(*times, np.nan).random_s
    for draws in range(1, 6):
        least = [min(drawn) for drawn in itertools.combinations(times, draws)]
        assert random_s[draws - 1] == pytest.approx(np.mean(least))


def test_the_optimum_at_once_is_one_and_random_search_is_zero_on_average() -> None:
    times = np.random.default_rng(0).lognormal(size=400)
    recorded = space(*times)
    assert recorded.score(np.full(200, times.min())) == 1.0
    orders = (np.random.default_rng(seed).permutation(times) for seed in range(600))
    scores = [recorded.score(np.minimum.accumulate(order)) for order in orders]
    assert abs(np.mean(scores)) < 4 * np.std(scores) / len(scores) ** 0.5


def test_steps_end_where_random_search_is_close() -> None:
    recorded = space(
        *np.linspace(1, 3, 1001)
    )  # close is 1.05: 25 ranks; the least of n has rank 1002 / (n + 1) - 1
    assert recorded.steps == 38
    late = np.full(300, 3.0)
    late[38:] = 1.0
    assert recorded.score(late) == recorded.score(late[:38])


def test_a_search_that_found_nothing_counts_as_the_slowest() -> None:
    recorded = space(*np.linspace(1, 3, 1001))
    assert recorded.score(np.array([np.inf, np.inf])) == recorded.score(np.array([3.0, 3.0])) < 0


def test_a_small_space_has_a_score_though_random_search_exhausts_it() -> None:
    recorded = space(1.0, 2.0, 3.0, np.nan)
    assert recorded.random_s[-1] == recorded.ordered_s[0]
    assert recorded.score(np.full(4, 1.0)) == 1.0
    assert np.isfinite(recorded.score(np.array([np.inf, 3.0, 2.0, 1.0])))


@pytest.mark.parametrize(("times_ms", "found"), [(["RuntimeFailedConfig"], 0), ([1.0, 1.0], 1)])
def test_a_space_without_a_best_is_refused(tmp_path: Path, times_ms: list[object], found: int) -> None:
    path = tmp_path / "cache.json"
    cache = {str(place): {"x": place, "time": time} for place, time in enumerate(times_ms)}
    path.write_text(json.dumps({"tune_params_keys": ["x"], "tune_params": {}, "cache": cache}))
    with pytest.raises(UsageError, match=f"found {found} different times, allowed 2 or more"):
        ReplaySpace.read(path)


def test_a_recording_is_read() -> None:
    recorded = ReplaySpace.read(SHIPPED)
    assert recorded.feasible.rows == len(recorded.times_s) == 268
    assert (np.diff(recorded.ordered_s) >= 0).all()


def test_what_is_no_recording_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        ReplaySpace.read(tmp_path / "none.json")
