import json
from dataclasses import replace

import pytest

from tests.output.report.parsed import Parsed, parsed
from tests.output.report.values import reported
from tests.trials import measurement, trial
from tuner.core.candidate import Candidate, Value
from tuner.core.errors import Failure, Stage
from tuner.core.runs import StoredTrial, record_of
from tuner.output.report.content import shown_trials
from tuner.output.report.parallel import FAILED, HEIGHT, Axis, axes_of, parallel


def point(number: int, median_s: float | None, strategy: str = "fake", **knobs: Value) -> StoredTrial:
    outcome = Failure(Stage.RUN, "crash") if median_s is None else measurement(median_s)
    made = trial(number, outcome)
    return replace(made, record=replace(record_of(made), candidate=Candidate.of(strategy, knobs)))


def drawn(*trials: StoredTrial) -> Parsed:
    text = parallel(shown_trials(reported(trials), 1))
    assert text is not None
    return parsed(text)


def heights(path: dict[str, str]) -> list[float]:
    return [float(y) for y in path["d"][1:].split(" ")[1::2]]


def test_axes_are_the_strategy_and_the_knobs_that_vary() -> None:
    trials = (point(0, 1.0, "a", x=2, y=1), point(1, 1.0, "b", x=10, y=1), point(2, 1.0, "a", y=1))
    assert axes_of(trials) == (Axis("strategy", ("a", "b")), Axis("x", ("2", "10", "-")))


def test_a_line_passes_its_values_and_ends_at_its_speed() -> None:
    found = drawn(point(0, 1.0, x=1), point(1, 2.0, x=2), point(2, None, x=2))
    lines = {path["data-t"]: heights(path) for path in found.of("path")}
    aside = 5  # lines of one value lie beside one another
    assert lines["100"] == pytest.approx([0, 0], abs=aside)
    assert lines["101"] == pytest.approx([HEIGHT, HEIGHT / 2], abs=aside)
    assert lines["102"] == pytest.approx([HEIGHT, FAILED], abs=aside)


def test_the_fastest_is_drawn_last_and_failed_ones_first() -> None:
    found = drawn(point(0, 1.0, x=1), point(1, 2.0, x=2), point(2, 3.0, x=2), point(3, None, x=1))
    assert [path["data-t"] for path in found.of("path")] == ["103", "102", "101", "100"]
    assert [group["class"] for group in found.of("g", "lines")] == [
        "lines failed",
        "lines slow",
        "lines fastest",
    ]


def test_an_axis_tells_a_script_its_values() -> None:
    axis, speed = drawn(point(0, 1.0, x="<a>"), point(1, 2.0, x="b")).of("g", "axis")
    assert json.loads(axis["data-values"]) == ["<a>", "b"]
    assert speed["data-name"] == "GFLOP/s"


def test_many_values_are_named_now_and_then() -> None:
    found = drawn(*(point(n, 1.0, x=n) for n in range(40)))
    assert found.text.count("GFLOP/s") == 1
    assert len(json.loads(found.of("g", "axis")[0]["data-values"])) == 40
    assert len(found.of("text")) < 30


def test_long_names_are_shortened_where_they_would_meet_others() -> None:
    found = drawn(point(0, 1.0, "a" * 30, b="c" * 30, d=1), point(1, 2.0, "b" * 30, b="x", d=2))
    assert "a" * 30 in found.text
    assert f"{'c' * 8}\N{HORIZONTAL ELLIPSIS}" in found.text
    assert "c" * 9 not in found.text


def test_where_nothing_differs_nothing_is_drawn() -> None:
    assert parallel((point(0, 1.0, x=1), point(1, 2.0, x=1))) is None
    assert parallel(()) is None
