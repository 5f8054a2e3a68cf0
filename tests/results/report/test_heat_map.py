from dataclasses import replace

from tests.trials import measurement, trial
from tests.tuning.fakes import settings
from tuner.core.candidate import Candidate
from tuner.core.errors import Failure, Stage
from tuner.core.runs import StoredTrial
from tuner.results.report.knob_plots import (
    VALUES_SHOWN,
    HeatMap,
    PairOutcome,
    chosen_levels,
    heat_map_of,
    pairs_of,
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
