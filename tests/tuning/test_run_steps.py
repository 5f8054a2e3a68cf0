"""What a session keeps in mind between trials."""

from dataclasses import replace

import pytest

from tests.fakes import FakeTarget, candidate, order
from tests.trials import measurement, proposal, trial
from tuner.core.candidate import Candidate
from tuner.core.errors import Failure, Stage
from tuner.core.interfaces import (
    FINAL_EFFORT,
    AbstractRunner,
    AbstractSampler,
    BoundRecord,
    Effort,
    FinalTimes,
)
from tuner.core.records import Measurement
from tuner.core.runs import Baseline, Counts, StoredTrial
from tuner.runtime.workers.runner import LocalRunner
from tuner.tuning.events import Interruption
from tuner.tuning.run_steps import (
    Progress,
    ReplayingRunner,
    ReplayingSampler,
    bound_record,
    choose_top_trials,
    evaluated_s,
    final_effort,
    noise_of,
    remeasure_top_trials,
    reserved_s,
)

SLOW, FAST = (trial(0, measurement(seconds)).record for seconds in (2.0, 1.0))
FAILED = replace(SLOW, outcome=Failure(Stage.RUN, "crashed"))


def test_the_best_is_the_fastest_and_an_outcome_of_an_earlier_session_counts_but_is_not_new() -> None:
    progress = Progress(())
    for number, record in enumerate((FAILED, SLOW, FAST, SLOW, FAILED)):
        progress.propose(number, 100 + number)
        progress.take(number, record)
    assert progress.best is FAST
    assert progress.counts == Counts(proposed=5, measured=3, failed=2)
    assert progress.trial_ids == {number: 100 + number for number in range(5)}
    progress = Progress((proposal(0, trial(0, measurement(1.0))), proposal(1)))
    assert progress.counts == Counts(proposed=2)
    assert [progress.take(0, FAST), progress.take(1, SLOW)] == [False, True]
    assert progress.counts == Counts(proposed=2, measured=2)
    assert progress.evaluated_s == evaluated_s(SLOW) > 0


def test_loading_verifying_and_timing_occupy_the_evaluator() -> None:
    for stage_s, seconds in (
        ({"bind": 1.0, "transform": 2.0, "lower": 4.0, "load": 8.0, "verify": 16.0, "measure": 32.0}, 56.0),
        ({"compile": 1.0}, 0.0),
        ({"bind": 1.0, "run": 5.0}, 5.0),  # a crash
    ):
        assert evaluated_s(replace(SLOW, stage_s=tuple(stage_s.items()))) == seconds


class RemeasurementRunner(AbstractRunner):
    """Answers finals with given times."""

    def __init__(self, times: tuple[Measurement | None, ...], baseline: Baseline | None = None) -> None:
        self._times = FinalTimes(times, baseline)
        self.top_trials: tuple[BoundRecord, ...] = ()

    def start(self, number: int, candidate: Candidate, effort: Effort) -> None:
        raise NotImplementedError

    def finish(self) -> BoundRecord:
        raise NotImplementedError

    def remeasure(self, top_trials: tuple[BoundRecord, ...], effort: Effort) -> FinalTimes:
        self.top_trials = top_trials
        return self._times

    def close(self) -> None:
        raise NotImplementedError


def test_a_part_of_the_budget_is_reserved_for_the_final_remeasurement() -> None:
    for budget_s, problems, top_trials, seconds in (
        (None, 1, 8, 0.0),
        (60.0, 1, 8, 1.5 + 24 * 0.3),
        (120.0, 6, 4, 6 * (1.5 + 16 * 0.3)),
        (5.0, 1, 8, 2.0),  # the search gets three fifths at least
    ):
        assert reserved_s(budget_s, problems, top_trials) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("search_s", "budget_s"), [(0.0, 0.03), (1.0, 0.03), (10.0, 0.2), (15.0, 0.3), (600.0, 0.3)]
)
def test_the_effort_follows_the_search_up_to_that_of_a_long_one(search_s: float, budget_s: float) -> None:
    effort = final_effort(search_s)
    assert effort.budget_s == pytest.approx(budget_s)
    assert effort.min_samples == FINAL_EFFORT.min_samples
    assert effort.has_offsets
    assert final_effort(search_s, left_s=1e9) == effort
    assert final_effort(15.0, left_s=1.5 + 24 * 0.1).budget_s == pytest.approx(0.1)
    assert final_effort(15.0, left_s=-1.0).budget_s == pytest.approx(0.03)


@pytest.mark.parametrize(
    ("trials", "numbers"),
    [
        ([trial(number, measurement(10.0 - number)) for number in range(10)], [9, 8, 7, 6, 5, 4, 3, 2]),
        ([trial(0, Failure(Stage.RUN, "x")), trial(2, measurement(1.0))], [2]),
        ([trial(number, measurement(1.0), code="c") for number in range(2)], [0]),
    ],
    ids=["in order", "without failures", "equal code once"],
)
def test_the_fastest_are_chosen(trials: list[StoredTrial], numbers: list[int]) -> None:
    assert [each.number for each in choose_top_trials(tuple(trials))] == numbers


def test_the_fastest_takes_part_twice_and_what_no_longer_works_is_left_out() -> None:
    top_trials = (trial(0, measurement(1.0), script="// 0"), trial(1, measurement(1.1), script="// 1"))
    baseline = Baseline("cuBLAS 13.1.2", 0, measurement(0.9))
    runner = RemeasurementRunner((measurement(1.0), measurement(1.2), measurement(1.03)), baseline)
    final_times = remeasure_top_trials(runner, top_trials)
    taken = [(each.record, each.script.text) for each in runner.top_trials]
    assert taken == [(each.record, each.script_text) for each in (*top_trials, top_trials[0])]
    assert [each.median_s for _, each in final_times.times] == [1.0, 1.2]
    assert final_times.noise == pytest.approx(0.03)
    assert final_times.baseline == baseline
    top_trials = (trial(0, measurement(1.0)), trial(1, measurement(1.1)))
    final_times = remeasure_top_trials(RemeasurementRunner((None, measurement(1.2), None)), top_trials)
    assert [each.number for each, _ in final_times.times] == [1]
    assert final_times.noise is None
    assert noise_of(measurement(1.1), measurement(1.0)) == pytest.approx(0.1)
    assert noise_of(measurement(1.0, 0.06), measurement(1.0, 0.02)) == pytest.approx(0.03)


class NotingSampler(AbstractSampler):
    """Proposes 100, 101, ... and writes down what it hears."""

    def __init__(self) -> None:
        self.heard: list[tuple[object, ...]] = []

    def ask(self, number: int) -> int | None:
        self.heard.append(("ask", number))
        return 100 + number

    def tell(self, row: int, value: float | None) -> None:
        self.heard.append(("tell", row, value))

    def replay(self, number: int, row: int) -> None:
        self.heard.append(("replay", number, row))


def test_stored_rows_and_outcomes_come_first_and_the_method_hears_of_them() -> None:
    method = NotingSampler()
    sampler = ReplayingSampler(method, (5, 9))
    assert [sampler.ask(number) for number in range(3)] == [5, 9, 102]
    sampler.tell(5, 1.0)
    sampler.replay(7, 3)
    replayed = [("replay", 0, 5), ("replay", 1, 9)]
    assert method.heard == [*replayed, ("ask", 2), ("tell", 5, 1.0), ("replay", 7, 3)]
    known = bound_record(trial(0, measurement(5.0)))
    inner = LocalRunner(order(), FakeTarget(), FakeTarget(), 0)
    runner = ReplayingRunner(inner, (known, None), Interruption())
    for number, x in enumerate((1, 7, 7)):
        runner.start(number, candidate(x), Effort())
    assert runner.finish() is known
    assert [runner.finish().record.median_s for _ in range(2)] == [1e-3, 1e-3]
    runner.close()
