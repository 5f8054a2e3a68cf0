"""Searches replayed on recorded and synthetic spaces, tuner's and others'; how well a model orders points."""

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from benchmarks.search import replay_run
from benchmarks.search.kernel_tuner import is_installed, replay_kernel_tuner, write_cache
from benchmarks.search.ordering import ordering, rank_correlation
from benchmarks.search.replay_run import replay
from benchmarks.search.replay_space import ReplaySpace
from benchmarks.search.synthetic_space import NOISE, ROWS, SPREAD, STEPS_MIN, synthetic_space
from tests.search.tasks import line
from tests.space.recorded.values import write_foreign
from tuner.core.errors import UsageError
from tuner.core.interfaces import AbstractSampler
from tuner.space.expressions import parse
from tuner.space.feasible_set import FeasibleSet
from tuner.space.search_space import Knob, SearchSpace

SHIPPED = Path(__file__).parents[3] / "tuner" / "space" / "recorded" / "matmul_48x64x40.t4.json.gz"
NUMBERS = tuple(range(12))
TIMES_S = np.random.default_rng(1).permutation(np.arange(1.0, 201.0))


def space(*times_s: float) -> ReplaySpace:
    return ReplaySpace("s", FeasibleSet.of((line(len(times_s)),)), np.array(times_s))


def test_random_search_is_zero_on_average_and_steps_end_where_it_is_close() -> None:
    times = (5.0, 1.0, 2.0, 9.0, 2.0)
    random_s = space(*times, np.nan).random_s
    for draws in range(1, 6):
        least = [min(drawn) for drawn in combinations(times, draws)]
        assert random_s[draws - 1] == pytest.approx(np.mean(least))
    many = np.random.default_rng(0).lognormal(size=400)
    recorded = space(*many)
    assert recorded.score(np.full(200, many.min())) == 1.0
    orders = (np.random.default_rng(seed).permutation(many) for seed in range(600))
    scores = [recorded.score(np.minimum.accumulate(order)) for order in orders]
    assert abs(np.mean(scores)) < 4 * np.std(scores) / len(scores) ** 0.5
    recorded = space(1.0, 2.0, 3.0, np.nan)
    assert recorded.random_s[-1] == recorded.ordered_s[0]
    assert recorded.score(np.full(4, 1.0)) == 1.0
    assert np.isfinite(recorded.score(np.array([np.inf, 3.0, 2.0, 1.0])))
    # close is 1.05: 25 ranks; the least of n has rank 1002 / (n + 1) - 1
    recorded = space(*np.linspace(1, 3, 1001))
    assert recorded.steps == 38
    late = np.full(300, 3.0)
    late[38:] = 1.0
    assert recorded.score(late) == recorded.score(late[:38])
    assert recorded.score(np.array([np.inf, np.inf])) == recorded.score(np.array([3.0, 3.0])) < 0


@pytest.mark.parametrize(("times_ms", "found"), [([None], 0), ([1.0, 1.0], 1)])
def test_a_space_without_a_best_is_refused(tmp_path: Path, times_ms: list[float | None], found: int) -> None:
    points = [({"x": index}, time_ms) for index, time_ms in enumerate(times_ms)]
    path = write_foreign(tmp_path / "space.json", points)
    with pytest.raises(UsageError, match=f"found {found} different times, allowed 2 or more"):
        ReplaySpace.read(path)


def test_a_recording_is_read_the_best_so_far_kept_and_a_failure_an_evaluation(tmp_path: Path) -> None:
    recorded = ReplaySpace.read(SHIPPED)
    assert recorded.feasible.rows == len(recorded.times_s) == 268
    assert (np.diff(recorded.ordered_s) >= 0).all()
    with pytest.raises(UsageError, match="cannot be read"):
        ReplaySpace.read(tmp_path / "none.json")
    done = replay(space(np.nan, 3.0, 5.0, np.nan, 2.0), "exhaustive", seed=0, evaluations=9)
    assert done.found_s == pytest.approx([np.inf, 3, 3, 3, 2])
    assert done.evaluations == done.asks == 5
    assert done.ask_s > 0


class Heard(AbstractSampler):
    def __init__(self) -> None:
        self.told: list[int] = []
        self.known: list[tuple[int, ...]] = []  # by trial

    def ask(self, number: int) -> int:
        self.known.append(tuple(self.told))
        return number

    def tell(self, row: int, value: float | None) -> None:
        self.told.append(row)

    def replay(self, number: int, row: int) -> None: ...


@pytest.mark.parametrize(
    ("pending", "known"), [(1, [(), (0,), (0, 1), (0, 1, 2)]), (3, [(), (), (), (0,)]), (9, [(), (), (), ()])]
)
def test_outcomes_of_pending_trials_are_not_reported(
    pending: int, known: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = Heard()
    monkeypatch.setattr(replay_run, "make_sampler", lambda *_: heard)
    done = replay(space(4.0, 3.0, 2.0, 1.0), "exhaustive", seed=0, evaluations=4, pending=pending)
    assert heard.known == known
    assert done.found_s == pytest.approx([4, 3, 2, 1])


def small_space() -> ReplaySpace:
    knobs = (Knob("tile", (8, 16, 32)), Knob("order", ("mn", "nm")))
    feasible = FeasibleSet.of((SearchSpace("s", knobs, (parse("tile != 16", "c[0]"),)),))
    return ReplaySpace("s", feasible, np.array([2e-3, np.nan, 1e-3, 4e-3]))


def test_the_cache_it_reads_has_every_row(tmp_path: Path) -> None:
    write_cache(small_space(), tmp_path / "cache.json")
    document = json.loads((tmp_path / "cache.json").read_text())
    assert list(document["cache"]) == ["8,mn", "8,nm", "32,mn", "32,nm"]
    failed = "RuntimeFailedConfig"
    times = [point["time"] for point in document["cache"].values()]
    times_ms = [np.nan if time == failed else time for time in times]
    assert np.divide(times_ms, 1e3) == pytest.approx(small_space().times_s, nan_ok=True)


@pytest.mark.skipif(not is_installed(), reason="needs kernel-tuner")
def test_its_search_finds_the_best_of_the_allowed_rows(tmp_path: Path) -> None:
    write_cache(small_space(), tmp_path / "cache.json")
    done = replay_kernel_tuner(small_space(), tmp_path / "cache.json", "random_sample", seed=1, evaluations=4)
    assert done.found_s[-1] == pytest.approx(1e-3)
    assert done.evaluations == 4


# Synthetic spaces of searches, and how well a model orders points.


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
def test_the_best_of_most_have_twins_half_have_even_steps_and_equal_seeds_give_equal_spaces(
    spaces: list[ReplaySpace],
) -> None:
    one, again, other = spaces[3], synthetic_space(3), spaces[5]
    assert one.feasible.spaces == again.feasible.spaces != other.feasible.spaces
    assert np.array_equal(one.times_s, again.times_s, equal_nan=True)
    near = [float(space.ordered_s[4] / space.ordered_s[0]) for space in spaces]
    assert sum(share < 1.03 for share in near) > len(near) / 2
    assert max(near) > 1.03  # and a few are alone
    stepped = 0
    for space in spaces:
        numbers = [knob.choices for knob in space.feasible.spaces[0].knobs if not knob.is_text]
        stepped += any(len(each) > 2 and each[2] == 3 * int(each[0]) for each in numbers)
    assert stepped >= len(spaces) / 2


def fixed_rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_an_order_has_no_regret_by_the_times_and_is_not_accepted_the_other_way_round() -> None:
    found = ordering(3 * TIMES_S, TIMES_S, fixed_rng())
    assert found.rank_correlation == pytest.approx(1.0)
    assert found.regret == ((1, 0.0), (8, 0.0), (16, 0.0))
    assert found.is_accepted
    (_, one), (_, eight), _ = found.random_regret
    assert one == pytest.approx(99.5, rel=0.05)  # the mean of 1 to 200, less the optimum
    assert eight == pytest.approx(201 / 9 - 1, rel=0.1)
    found = ordering(-TIMES_S, TIMES_S, fixed_rng())
    assert found.rank_correlation == pytest.approx(-1.0)
    assert found.beats_random == 0.0
    assert found.regret[1] == (8, 192.0)  # the best of the eight slowest takes 193 s, the optimum 1 s
    assert not found.is_accepted
    costs = fixed_rng().permutation(np.arange(200.0))
    costs[TIMES_S.argmin()] = -1.0
    lucky = ordering(costs, TIMES_S, fixed_rng())
    assert (lucky.regret[0], lucky.is_accepted) == ((1, 0.0), False)
    times, costs = TIMES_S.copy(), TIMES_S.copy()
    times[:10], costs[10:30] = np.nan, np.inf
    assert ordering(costs, times, fixed_rng()).points == 170
    tied = rank_correlation(np.array([1.0, 1.0, 2.0]), np.array([1.0, 2.0, 3.0]))
    assert tied == pytest.approx(0.866, abs=1e-3)
