import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trials import measurement, run, trial
from tuner.core.errors import Failure, Stage
from tuner.core.records import Measurement
from tuner.core.runs import SEED, WARM_START, InitialConfiguration, Run, StoredTrial
from tuner.results.report import run_plots
from tuner.results.report.content import HEIGHT, TICKS, WIDTH
from tuner.results.report.run_plots import FINALS, Band, Convergence, Phase, convergence_of, phases_of

WRONG = Failure(Stage.VERIFY, "wrong")
TRIALS = tuple(trial(n, measurement(1e-3)) for n in range(6))


def drawn(*trials: StoredTrial, baseline_s: float | None = None) -> Convergence:
    found = convergence_of(run(baseline_s), trials)
    assert found is not None
    return found


def at(*times_s: float | None) -> list[StoredTrial]:
    return [trial(n, WRONG if s is None else measurement(s)) for n, s in enumerate(times_s)]


def best_line(of: Convergence) -> list[tuple[str, float]]:
    """Returns the commands of the path of the best so far; the first one is the start's x."""
    start, rest = re.fullmatch(r"M(\S+) (.*)", of.staircase).groups()  # type: ignore[union-attr]
    return [("M", float(start)), *((c, float(v)) for c, v in re.findall(r"([HV])([\d.]+)", rest))]


def begun_with(*first: tuple[StoredTrial, str]) -> Run:
    points = tuple(InitialConfiguration(of.record.candidate, origin) for of, origin in first)
    return replace(run(), settings=replace(run().settings, first=points))


def test_the_line_is_a_staircase_that_only_rises_and_reaches_the_edge() -> None:
    found = drawn(*at(4e-6, 2e-6, None, 3e-6, 1e-6))
    line = best_line(found)
    assert [x for command, x in line if command in "MH"] == [72, 216, 648, WIDTH]
    heights = [y for command, y in line if command == "V"]
    assert heights == sorted(heights, reverse=True)
    assert [each.trial for each in found.dots] == [100, 101, 104, 103]
    assert found.failures.startswith("M360 ")
    assert found.best == pytest.approx(2 * 8**3 / 1e-6 / 1e9)
    assert (found.count, found.failed) == (5, (2,))


def test_phases_are_bands_that_are_named_where_there_is_room() -> None:
    assert drawn(*at(4e-6, 3e-6)).bands == (Band("random", 0, WIDTH),)
    assert Band("random", 0, 50).has_space
    assert not Band("random", 0, 48).has_space


def test_top_trials_have_a_band_of_their_own_with_their_second_time() -> None:
    timed = replace(trial(0, measurement(2e-3)), final=Measurement((1e-3,), 1, 1e-3, (1e-3, 1e-3)))
    found = drawn(timed, trial(1, measurement(2e-3)))
    assert found.final_times[0].gflop_per_s > found.best
    assert WIDTH < found.final_x(1) < found.right == WIDTH + FINALS
    assert found.bands[-1] == Band("final re-measurement", WIDTH, FINALS)
    assert drawn(trial(0, measurement(1e-3))).right == WIDTH


@pytest.mark.parametrize("trials", [(), (trial(0, WRONG),)])
def test_without_times_there_is_no_curve(trials: tuple[StoredTrial, ...]) -> None:
    assert convergence_of(run(), trials) is None


@given(st.lists(st.none() | st.floats(1e-9, 1e3), min_size=1, max_size=60), st.none() | st.floats(1e-9, 1e3))
def test_everything_is_drawn_inside(times_s: list[float | None], baseline_s: float | None) -> None:
    found = drawn(*at(1.0, *times_s), baseline_s=baseline_s)
    x = [found.x(each.number) for each in found.dots] + [v for c, v in best_line(found) if c in "MH"]
    y = [found.y(each.gflop_per_s) for each in found.dots] + [v for c, v in best_line(found) if c == "V"]
    y += [place for place, _ in found.up] + [found.y(found.baseline or 0.0)]
    assert all(0 <= each <= WIDTH for each in (*x, *(place for place, _ in found.across)))
    assert all(0 <= each <= HEIGHT for each in y)
    assert 1 <= len(found.up) <= 2 * TICKS


def test_a_long_run_is_thinned_out_but_not_its_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_plots, "DOTS", 10)
    found = drawn(*at(*(1e-3 - 1e-6 * (n // 7) for n in range(300)), *([None] * 300)))
    assert len(found.dots) < 60
    assert found.failures.count("M") <= 10
    assert set(found.turns) <= set(found.dots)


def test_first_points_are_named_by_their_origins_and_then_comes_the_sampler() -> None:
    begun = begun_with((TRIALS[0], WARM_START), (TRIALS[1], SEED), (TRIALS[2], WARM_START))
    assert phases_of(begun, TRIALS) == (Phase("warm start, seed", 0, 2), Phase("random", 3, 5))


def test_a_run_without_first_points_is_one_phase() -> None:
    assert phases_of(run(), TRIALS[::-1]) == (Phase("random", 0, 5),)
    assert phases_of(run(), ()) == ()
