from dataclasses import replace

from tests.output.report.parsed import parsed
from tests.trials import measurement, trial
from tests.tuning.fakes import settings
from tuner.core.candidate import Candidate
from tuner.core.errors import Failure, Stage
from tuner.core.runs import StoredTrial, record_of
from tuner.output.report.heat_map import VALUES_SHOWN, PairOutcome, chosen_levels, heat_map, pairs_of

LEVELS = (("x", 1), ("x", 2), ("y", "a"), ("y", "b"))


def point(number: int, median_s: float | None, x: int, y: str) -> StoredTrial:
    outcome = Failure(Stage.RUN, "crash") if median_s is None else measurement(median_s)
    made = trial(number, outcome)
    record = replace(record_of(made), candidate=Candidate.of("fake", {"x": x, "y": y}))
    assert record.problem == settings().problem
    return replace(made, record=record)


TRIALS = (
    point(0, 2.0, 1, "a"),
    point(1, 1.0, 1, "a"),
    point(2, 4.0, 2, "b"),
    point(3, None, 2, "a"),
)


def test_a_pair_tells_the_best_of_the_trials_that_have_both_values() -> None:
    assert pairs_of(TRIALS, LEVELS) == {
        (("x", 1), ("y", "a")): PairOutcome(2, 1.0),
        (("x", 2), ("y", "b")): PairOutcome(1, 0.25),
    }


def test_each_pair_of_two_knobs_is_one_cell() -> None:
    drawn = parsed(heat_map(LEVELS, pairs_of(TRIALS, LEVELS)))
    assert sorted(each["class"] for each in drawn.of("rect")) == [
        "shade-0",
        "shade-5",
        "shade-none",
        "shade-none",
    ]
    assert "x=1, y=a: 100.0% of the best, 2 timed" in drawn.text
    assert "x=2, y=a: not timed" in drawn.text


def test_the_most_important_knobs_come_first_and_whole() -> None:
    values = {"wide": tuple(range(VALUES_SHOWN)), "x": (1, 2), "y": ("a", "b")}
    chosen = chosen_levels(values, {"y": 0.6, "wide": 0.3, "x": 0.1})
    assert chosen == (("y", "a"), ("y", "b"), ("x", 1), ("x", 2))
