import json
from dataclasses import replace

import pytest

from tests.results.report.values import reported
from tests.trials import measurement, trial
from tests.tuning.fakes import settings
from tuner.core.candidate import Candidate, Value
from tuner.core.errors import Failure, Stage
from tuner.core.runs import StoredTrial
from tuner.results.report.content import HEIGHT, shown_trials
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

LEVELS = (("x", 1), ("x", 2), ("y", "a"), ("y", "b"))


def point(number: int, median_s: float | None, x: int, y: str) -> StoredTrial:
    outcome = Failure(Stage.RUN, "crash") if median_s is None else measurement(median_s)
    made = trial(number, outcome)
    record = replace(made.record, candidate=Candidate.of("fake", {"x": x, "y": y}))
    assert record.problem == settings().problem
    return replace(made, record=record)


TRIALS = (point(0, 2.0, 1, "a"), point(1, 1.0, 1, "a"), point(2, 4.0, 2, "b"), point(3, None, 2, "a"))


def test_a_pair_reports_the_best_of_the_trials_that_have_both_values() -> None:
    assert pairs_of(TRIALS, LEVELS) == {
        (("x", 1), ("y", "a")): PairOutcome(2, 1.0),
        (("x", 2), ("y", "b")): PairOutcome(1, 0.25),
    }


def test_each_pair_of_two_knobs_is_one_cell_that_is_darker_where_it_is_faster() -> None:
    drawn = HeatMap(LEVELS, pairs_of(TRIALS, LEVELS))
    assert drawn.cells == tuple((x, y) for y in LEVELS[2:] for x in LEVELS[:2])
    assert {pair: outcome.shade for pair, outcome in drawn.pairs.items()} == {
        (LEVELS[0], LEVELS[2]): 5,
        (LEVELS[1], LEVELS[3]): 0,
    }
    assert drawn.margin > 0


def test_levels_lie_in_order_and_knobs_apart() -> None:
    places = [HeatMap(LEVELS, {}).place(level) for level in LEVELS]
    assert places[1] - places[0] == places[3] - places[2] < places[2] - places[1]


def test_one_knob_alone_has_no_map() -> None:
    assert heat_map_of(TRIALS, {"x": (1, 2)}, {}) is None
    assert heat_map_of(TRIALS, {"x": (1, 2), "y": ("a", "b")}, {}) == HeatMap(
        LEVELS, pairs_of(TRIALS, LEVELS)
    )


def test_the_most_important_knobs_come_first_and_whole() -> None:
    values = {"wide": tuple(range(VALUES_SHOWN)), "x": (1, 2), "y": ("a", "b")}
    chosen = chosen_levels(values, {"y": 0.6, "wide": 0.3, "x": 0.1})
    assert chosen == (("y", "a"), ("y", "b"), ("x", 1), ("x", 2))


def parallel_point(
    number: int, median_s: float | None, strategy: str = "fake", **knobs: Value
) -> StoredTrial:
    outcome = Failure(Stage.RUN, "crash") if median_s is None else measurement(median_s)
    made = trial(number, outcome)
    return replace(made, record=replace(made.record, candidate=Candidate.of(strategy, knobs)))


def drawn(*trials: StoredTrial) -> Parallel:
    found = parallel_of(shown_trials(reported(trials), 1))
    assert found is not None
    return found


def heights(of: Parallel, trial: StoredTrial) -> list[float]:
    return [float(y) for y in of.path(trial)[1:].split(" ")[1::2]]


def test_axes_are_the_strategy_and_the_knobs_that_vary() -> None:
    trials = (
        parallel_point(0, 1.0, "a", x=2, y=1),
        parallel_point(1, 1.0, "b", x=10, y=1),
        parallel_point(2, 1.0, "a", y=1),
    )
    assert axes_of(trials) == (Axis("strategy", ("a", "b")), Axis("x", ("2", "10", "-")))


def test_a_line_passes_its_values_and_ends_at_its_speed() -> None:
    trials = (parallel_point(0, 1.0, x=1), parallel_point(1, 2.0, x=2), parallel_point(2, None, x=2))
    of = drawn(*trials)
    aside = 5  # lines of one value lie side by side
    assert heights(of, trials[0]) == pytest.approx([0, 0], abs=aside)
    assert heights(of, trials[1]) == pytest.approx([HEIGHT, HEIGHT / 2], abs=aside)
    assert heights(of, trials[2]) == pytest.approx([HEIGHT, FAILED], abs=aside)
    assert (FAILED, "failed") in of.speeds


def test_the_fastest_is_drawn_last_and_failed_ones_first() -> None:
    found = drawn(
        parallel_point(0, 1.0, x=1),
        parallel_point(1, 2.0, x=2),
        parallel_point(2, 3.0, x=2),
        parallel_point(3, None, x=1),
    )
    assert [(group.name, [trial.id for trial in group.trials]) for group in found.groups] == [
        ("failed", [103]),
        ("slow", [102, 101]),
        ("fastest", [100]),
    ]


def test_the_more_lines_the_paler_each() -> None:
    trials = tuple(parallel_point(n, 1.0, x=n) for n in range(200))
    assert float(LineGroup("slow", trials).opacity) < float(LineGroup("slow", trials[:40]).opacity) < 1


def test_many_values_are_named_now_and_then() -> None:
    axis = Axis("x", tuple(map(str, range(40))))
    assert len(axis.labels()) <= LABELS
    assert len(json.loads(axis.values_json)) == 40


def test_long_names_are_shortened_where_they_would_meet_others() -> None:
    found = drawn(
        parallel_point(0, 1.0, "a" * 30, b="c" * 30, d=1), parallel_point(1, 2.0, "b" * 30, b="x", d=2)
    )
    assert found.labels(0)[0] == (0, "a" * 30)
    assert found.labels(1)[0] == (0, f"{'c' * 8}\N{HORIZONTAL ELLIPSIS}")
    assert len(Axis("k" * 30, ("1", "2")).short_name) == NAME_LIMIT


def test_where_nothing_differs_nothing_is_drawn() -> None:
    assert parallel_of((parallel_point(0, 1.0, x=1), parallel_point(1, 1.0, x=1))) is None
    assert parallel_of(()) is None
