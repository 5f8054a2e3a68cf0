import json
from dataclasses import replace

import pytest

from tests.results.report.values import reported
from tests.trials import measurement, trial
from tuner.core.candidate import Candidate, Value
from tuner.core.errors import Failure, Stage
from tuner.core.runs import StoredTrial
from tuner.results.report.content import HEIGHT, shown_trials
from tuner.results.report.knob_plots import (
    FAILED,
    LABELS,
    NAME_LIMIT,
    Axis,
    LineGroup,
    Parallel,
    axes_of,
    parallel_of,
)


def point(number: int, median_s: float | None, strategy: str = "fake", **knobs: Value) -> StoredTrial:
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
    trials = (point(0, 1.0, "a", x=2, y=1), point(1, 1.0, "b", x=10, y=1), point(2, 1.0, "a", y=1))
    assert axes_of(trials) == (Axis("strategy", ("a", "b")), Axis("x", ("2", "10", "-")))


def test_a_line_passes_its_values_and_ends_at_its_speed() -> None:
    trials = (point(0, 1.0, x=1), point(1, 2.0, x=2), point(2, None, x=2))
    of = drawn(*trials)
    aside = 5  # lines of one value lie side by side
    assert heights(of, trials[0]) == pytest.approx([0, 0], abs=aside)
    assert heights(of, trials[1]) == pytest.approx([HEIGHT, HEIGHT / 2], abs=aside)
    assert heights(of, trials[2]) == pytest.approx([HEIGHT, FAILED], abs=aside)
    assert (FAILED, "failed") in of.speeds


def test_the_fastest_is_drawn_last_and_failed_ones_first() -> None:
    found = drawn(point(0, 1.0, x=1), point(1, 2.0, x=2), point(2, 3.0, x=2), point(3, None, x=1))
    assert [(group.name, [trial.id for trial in group.trials]) for group in found.groups] == [
        ("failed", [103]),
        ("slow", [102, 101]),
        ("fastest", [100]),
    ]


def test_the_more_lines_the_paler_each() -> None:
    trials = tuple(point(n, 1.0, x=n) for n in range(200))
    assert float(LineGroup("slow", trials).opacity) < float(LineGroup("slow", trials[:40]).opacity) < 1


def test_many_values_are_named_now_and_then() -> None:
    axis = Axis("x", tuple(map(str, range(40))))
    assert len(axis.labels()) <= LABELS
    assert len(json.loads(axis.values_json)) == 40


def test_long_names_are_shortened_where_they_would_meet_others() -> None:
    found = drawn(point(0, 1.0, "a" * 30, b="c" * 30, d=1), point(1, 2.0, "b" * 30, b="x", d=2))
    assert found.labels(0)[0] == (0, "a" * 30)
    assert found.labels(1)[0] == (0, f"{'c' * 8}\N{HORIZONTAL ELLIPSIS}")
    assert len(Axis("k" * 30, ("1", "2")).short_name) == NAME_LIMIT


def test_where_nothing_differs_nothing_is_drawn() -> None:
    assert parallel_of((point(0, 1.0, x=1), point(1, 1.0, x=1))) is None
    assert parallel_of(()) is None
