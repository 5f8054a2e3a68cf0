import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.results.report.values import reported, with_candidate
from tests.trials import measurement, run, trial
from tuner.core.candidate import Value
from tuner.core.errors import Failure, Stage
from tuner.core.records import Measurement
from tuner.core.runs import SEED, WARM_START, InitialConfiguration, Run, StoredTrial
from tuner.results.report import run_plots
from tuner.results.report.content import HEIGHT, TICKS, WIDTH, shown_trials
from tuner.results.report.knob_plots import (
    FAILED,
    LABELS,
    NAME_LIMIT,
    VALUES_SHOWN,
    Axis,
    HeatMap,
    LineGroup,
    PairOutcome,
    Parallel,
    axes_of,
    chosen_levels,
    heat_map_of,
    pairs_of,
    parallel_of,
)
from tuner.results.report.run_plots import FINALS, Band, Convergence, Phase, convergence_of, phases_of

LEVELS = (("x", 1), ("x", 2), ("y", "a"), ("y", "b"))


def point(number: int, median_s: float | None, strategy: str = "fake", **knobs: Value) -> StoredTrial:
    outcome = Failure(Stage.RUN, "crash") if median_s is None else measurement(median_s)
    return with_candidate(trial(number, outcome), strategy, knobs)


TRIALS = (
    *(point(0, 2.0, x=1, y="a"), point(1, 1.0, x=1, y="a"), point(2, 4.0, x=2, y="b")),
    point(3, None, x=2, y="a"),
)


def test_each_pair_of_two_knobs_is_one_cell_of_the_best_with_both_that_is_darker_where_it_is_faster() -> None:
    pairs = pairs_of(TRIALS, LEVELS)
    assert pairs == {
        (("x", 1), ("y", "a")): PairOutcome(2, 1.0),
        (("x", 2), ("y", "b")): PairOutcome(1, 0.25),
    }
    drawn = HeatMap(LEVELS, pairs)
    assert drawn.cells == tuple((x, y) for y in LEVELS[2:] for x in LEVELS[:2])
    assert {pair: outcome.shade for pair, outcome in drawn.pairs.items()} == {
        (LEVELS[0], LEVELS[2]): 5,
        (LEVELS[1], LEVELS[3]): 0,
    }
    assert drawn.margin > 0
    places = [HeatMap(LEVELS, {}).place(level) for level in LEVELS]
    assert places[1] - places[0] == places[3] - places[2] < places[2] - places[1]
    assert heat_map_of(TRIALS, {"x": (1, 2)}, {}) is None
    assert heat_map_of(TRIALS, {"x": (1, 2), "y": ("a", "b")}, {}) == drawn


def test_the_most_important_knobs_come_first_and_whole() -> None:
    values = {"wide": tuple(range(VALUES_SHOWN)), "x": (1, 2), "y": ("a", "b")}
    chosen = chosen_levels(values, {"y": 0.6, "wide": 0.3, "x": 0.1})
    assert chosen == (("y", "a"), ("y", "b"), ("x", 1), ("x", 2))


def drawn(*trials: StoredTrial) -> Parallel:
    found = parallel_of(shown_trials(reported(trials), 1))
    assert found is not None
    return found


def heights(of: Parallel, trial: StoredTrial) -> list[float]:
    return [float(y) for y in of.path(trial)[1:].split(" ")[1::2]]


def test_axes_are_the_strategy_and_the_knobs_that_vary() -> None:
    trials = (point(0, 1.0, "a", x=2, y=1), point(1, 1.0, "b", x=10, y=1), point(2, 1.0, "a", y=1))
    assert axes_of(trials) == (Axis("strategy", ("a", "b")), Axis("x", ("2", "10", "-")))
    assert parallel_of((point(0, 1.0, x=1), point(1, 1.0, x=1))) is None
    assert parallel_of(()) is None


def test_a_line_passes_its_values_and_ends_at_its_speed() -> None:
    trials = (point(0, 1.0, x=1), point(1, 2.0, x=2), point(2, None, x=2))
    of = drawn(*trials)
    aside = 5  # lines of one value lie side by side
    assert heights(of, trials[0]) == pytest.approx([0, 0], abs=aside)
    assert heights(of, trials[1]) == pytest.approx([HEIGHT, HEIGHT / 2], abs=aside)
    assert heights(of, trials[2]) == pytest.approx([HEIGHT, FAILED], abs=aside)
    assert (FAILED, "failed") in of.speeds


def test_the_fastest_is_drawn_last_and_failed_ones_first_and_many_lines_are_paler() -> None:
    found = drawn(point(0, 1.0, x=1), point(1, 2.0, x=2), point(2, 3.0, x=2), point(3, None, x=1))
    assert [(group.name, [trial.id for trial in group.trials]) for group in found.groups] == [
        ("failed", [103]),
        ("slow", [102, 101]),
        ("fastest", [100]),
    ]
    trials = tuple(point(n, 1.0, x=n) for n in range(200))
    assert float(LineGroup("slow", trials).opacity) < float(LineGroup("slow", trials[:40]).opacity) < 1


def test_many_values_are_named_now_and_then_and_long_names_shortened_where_they_would_meet_others() -> None:
    axis = Axis("x", tuple(map(str, range(40))))
    assert len(axis.labels()) <= LABELS
    assert len(json.loads(axis.values_json)) == 40
    found = drawn(point(0, 1.0, "a" * 30, b="c" * 30, d=1), point(1, 2.0, "b" * 30, b="x", d=2))
    assert found.labels(0)[0] == (0, "a" * 30)
    assert found.labels(1)[0] == (0, f"{'c' * 8}\N{HORIZONTAL ELLIPSIS}")
    assert len(Axis("k" * 30, ("1", "2")).short_name) == NAME_LIMIT


WRONG = Failure(Stage.VERIFY, "wrong")
SIX = tuple(trial(n, measurement(1e-3)) for n in range(6))


def curve(*trials: StoredTrial, baseline_s: float | None = None) -> Convergence:
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


def test_the_line_is_a_staircase_that_only_rises_and_reaches_the_edge_with_bands_for_phases() -> None:
    found = curve(*at(4e-6, 2e-6, None, 3e-6, 1e-6))
    line = best_line(found)
    assert [x for command, x in line if command in "MH"] == [72, 216, 648, WIDTH]
    heights = [y for command, y in line if command == "V"]
    assert heights == sorted(heights, reverse=True)
    assert [each.trial for each in found.dots] == [100, 101, 104, 103]
    assert found.failures.startswith("M360 ")
    assert found.best == pytest.approx(2 * 8**3 / 1e-6 / 1e9)
    assert (found.count, found.failed) == (5, (2,))
    assert curve(*at(4e-6, 3e-6)).bands == (Band("random", 0, WIDTH),)
    assert Band("random", 0, 50).has_space
    assert not Band("random", 0, 48).has_space


def test_top_trials_have_a_band_of_their_own_with_their_second_time() -> None:
    timed = replace(trial(0, measurement(2e-3)), final=Measurement((1e-3,), 1, 1e-3, (1e-3, 1e-3)))
    found = curve(timed, trial(1, measurement(2e-3)))
    assert found.final_times[0].gflop_per_s > found.best
    assert WIDTH < found.final_x(1) < found.right == WIDTH + FINALS
    assert found.bands[-1] == Band("final re-measurement", WIDTH, FINALS)
    assert curve(trial(0, measurement(1e-3))).right == WIDTH


def test_phases_are_named_by_the_origins_of_first_points_and_then_by_the_sampler() -> None:
    assert convergence_of(run(), ()) is convergence_of(run(), (trial(0, WRONG),)) is None
    begun = begun_with((SIX[0], WARM_START), (SIX[1], SEED), (SIX[2], WARM_START))
    assert phases_of(begun, SIX) == (Phase("warm start, seed", 0, 2), Phase("random", 3, 5))
    assert phases_of(run(), SIX[::-1]) == (Phase("random", 0, 5),)
    assert phases_of(run(), ()) == ()


@given(st.lists(st.none() | st.floats(1e-9, 1e3), min_size=1, max_size=60), st.none() | st.floats(1e-9, 1e3))
def test_everything_is_drawn_inside(times_s: list[float | None], baseline_s: float | None) -> None:
    found = curve(*at(1.0, *times_s), baseline_s=baseline_s)
    x = [found.x(each.number) for each in found.dots] + [v for c, v in best_line(found) if c in "MH"]
    y = [found.y(each.gflop_per_s) for each in found.dots] + [v for c, v in best_line(found) if c == "V"]
    y += [place for place, _ in found.up] + [found.y(found.baseline or 0.0)]
    assert all(0 <= each <= WIDTH for each in (*x, *(place for place, _ in found.across)))
    assert all(0 <= each <= HEIGHT for each in y)
    assert 1 <= len(found.up) <= 2 * TICKS


def test_a_long_run_is_thinned_out_but_not_its_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_plots, "DOTS", 10)
    found = curve(*at(*(1e-3 - 1e-6 * (n // 7) for n in range(300)), *([None] * 300)))
    assert len(found.dots) < 60
    assert found.failures.count("M") <= 10
    assert set(found.turns) <= set(found.dots)
