"""Rounds of timing: none replaces another, and the quietest answers. The clock is scripted."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks.busy_loops import spinning
from tests.fakes import FakeTarget, Loaded, candidate, order
from tests.forwarding import ForwardingTarget
from tests.trials import measurement, proposal, trial
from tests.tuning import fakes
from tests.tuning.fakes import present
from tuner.api import tuning
from tuner.core.errors import CandidateError, Failure, Stage
from tuner.core.interfaces import (
    FINAL_EFFORT,
    AbstractRunner,
    AbstractSampler,
    BoundRecord,
    Effort,
    FinalTimes,
)
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.core.queries import Counts, TaskQuery, TrialQuery
from tuner.core.records import HostConditions, Measurement
from tuner.core.round_quality import OTHERS_LIMIT
from tuner.core.runs import Baseline
from tuner.core.trials import StoredTrial
from tuner.db.store import Store
from tuner.results.best_trials import best_result
from tuner.results.past_runs import past_trials
from tuner.runtime import timing
from tuner.runtime.workers.runner import RunnerOrder, TrialRunner
from tuner.targets.backends import Backends
from tuner.targets.target import RunnerSettings
from tuner.tuning import remeasurement
from tuner.tuning.budget import (
    UNTIMED,
    final_effort,
    in_flight_s,
    reserved_s,
    untimed_factor,
)
from tuner.tuning.events import Event, Interruption, RemeasurementStarted
from tuner.tuning.progress import Progress, evaluated_s
from tuner.tuning.run import resume
from tuner.tuning.search_loop import ReplayingRunner
from tuner.tuning.tuned_run import TunedRun
from tuner.tuning.tuning_session import search

Slowdown = Callable[[int], float]  # of the n-th sample of a round
CUT = "timed out after 88 s"


def quiet(sample: int) -> float:
    return 1.0


def loaded_at_times(sample: int) -> float:
    """A busy loop that starts and stops: each of its stretches takes half of the processor."""
    return 2.0 if sample // 40 % 2 else 1.0


def loaded(sample: int) -> float:
    return 3.0


class ScriptedTarget(ForwardingTarget):
    def __init__(self, slowdown: Slowdown, reference_drift: float) -> None:
        super().__init__(FakeTarget(), FakeTarget())
        self._slowdown = slowdown
        self._host = HostConditions(0.0, reference_drift, 0.0, 0.0, 0.0, 1e-3, reference_drift)
        self._samples = 0

    def measure_together(
        self, problem: Problem, loaded: tuple[object, ...], effort: Effort, rng: np.random.Generator
    ) -> tuple[Measurement, ...]:
        stopwatches = tuple(self._stopwatch(one) for one in loaded)
        times = timing.measure_together_by(stopwatches, effort, rng)
        return tuple(replace(each, host=self._host) for each in times)

    def _stopwatch(self, one: object) -> timing.Stopwatch:
        assert isinstance(one, Loaded)
        call_s = one.call_s

        def take(times: int) -> float:
            self._samples += 1
            return call_s * self._slowdown(self._samples)

        return take


def parts(slowdown: Slowdown = quiet, reference_drift: float = 0.0) -> Backends:
    def runner(order: RunnerOrder, how: RunnerSettings) -> AbstractRunner:
        target = ScriptedTarget(slowdown, reference_drift)
        return TrialRunner.local(order, target, target, how.seed)

    return fakes.backends(runner=runner)


def tuned(store: Store, backends: Backends) -> TunedRun:
    return fakes.tune(store, backends, trials=8)


def again(store: Store, backends: Backends) -> TunedRun:
    return resume(1, backends, store, Interruption(), retime=True)


@pytest.mark.parametrize("was_killed", [False, True])
def test_resuming_a_run_that_has_its_round_changes_no_answer(store: Store, was_killed: bool) -> None:
    done = tuned(store, parts())
    if was_killed:
        store.resume_run(1)  # as a session leaves it that is killed at the very end
    events: list[Event] = []
    resumed = resume(1, parts(loaded), store, Interruption(), events.append)
    assert (resumed.selected, resumed.rounds) == (done.selected, done.rounds)
    assert resumed.run.status == "done"
    assert not any(isinstance(event, RemeasurementStarted) for event in events)
    if not was_killed:
        assert (resumed.run, events) == (done.run, [])


@pytest.mark.parametrize("load", [(loaded_at_times, 1.0), (loaded, 0.5)])
def test_a_round_under_load_replaces_no_quiet_one(store: Store, load: tuple[Slowdown, float]) -> None:
    done = tuned(store, parts())
    disturbed = again(store, parts(*load))
    assert (disturbed.selected, disturbed.run.reliability.unreliable) == (done.selected, "")
    assert disturbed.run.baseline == done.run.baseline
    assert [bool(each.quality.reliability.unreliable) for each in disturbed.rounds] == [False, True]
    assert [each.is_answering for each in disturbed.rounds] == [True, False]


def test_a_quiet_round_replaces_an_answer_under_load_wherever_it_is_asked_for(store: Store) -> None:
    disturbed = tuned(store, parts(loaded_at_times, 1.0))
    assert "load, other programs kept 1.0 processors busy" in disturbed.run.reliability.unreliable
    mended = again(store, parts())
    assert mended.run.reliability.unreliable == ""
    selected = present(mended.selected)
    assert selected.measurement.samples_s != present(disturbed.selected).measurement.samples_s
    assert [each.is_answering for each in mended.rounds] == [False, True]
    fakes.tune(store, parts(loaded_at_times, 1.0), trials=20, seed=1)
    problem = fakes.settings().problem
    (given,) = past_trials(store, TrialQuery(TaskQuery.of(problem), best=True))
    assert given == selected.best == best_result(store, problem, fakes.MACHINE.name).best


class CutTarget(FakeTarget):
    def measure_together(self, *_: Any) -> tuple[Measurement, ...]:
        raise CandidateError(Stage.RUN, CUT)


def cut_parts() -> Backends:
    return fakes.backends(
        runner=lambda order, how: TrialRunner.local(order, FakeTarget(), CutTarget(), how.seed)
    )


def test_a_lost_round_is_stored_is_the_reliability_of_its_run_and_is_repeated(store: Store) -> None:
    lost = tuned(store, cut_parts())
    assert (lost.run.reliability.unreliable, lost.run.noise) == (
        f"the final re-measurement was lost: {CUT}",
        None,
    )
    assert not present(lost.run.baseline).is_interleaved
    (stored,) = lost.rounds
    assert (stored.quality.is_lost, stored.is_answering) == (True, False)
    assert all(
        trial.reliability.unreliable == lost.run.reliability.unreliable
        for trial in store.trials(TrialQuery(run=1))
    )
    store.resume_run(1)
    resumed = resume(1, parts(), store, Interruption())
    assert resumed.run.reliability.unreliable == ""
    assert present(resumed.selected).best.final is not None
    assert [each.is_answering for each in resumed.rounds] == [False, True]


def test_a_lost_round_takes_nothing_from_an_earlier_one(store: Store) -> None:
    done = tuned(store, parts())
    lost = again(store, cut_parts())
    assert (lost.selected, lost.run.reliability.unreliable, lost.run.noise) == (
        done.selected,
        "",
        done.run.noise,
    )
    assert [each.quality.is_lost for each in lost.rounds] == [False, True]
    assert [each.is_answering for each in lost.rounds] == [True, False]


LOOPS_PER_PROCESSOR = 2


@pytest.mark.mlir
@pytest.mark.slow
def test_timing_again_next_to_busy_loops_replaces_no_quieter_answer(tmp_path: Path) -> None:
    """Whether the first round is a quiet one is this machine's affair; the second never is."""
    database = tmp_path / "drill.db"
    first = tuning.tune(Matmul(64, 64, 64), target="cpu", trials=3, db=database)
    assert first.selected is not None
    with spinning(LOOPS_PER_PROCESSOR * len(os.sched_getaffinity(0))):
        again = tuning.resume(first.run.id, database, retime=True)
    calm, disturbed = (each.quality for each in again.rounds)
    assert (
        disturbed.reliability.unreliable
    )  # where a virtual machine's processors are taken too, that is the cause named
    assert present(disturbed.host).others_cores > OTHERS_LIMIT
    keeps_first = calm.rank <= disturbed.rank
    assert keeps_first or calm.reliability.unreliable
    assert [each.is_answering for each in again.rounds] == [keeps_first, not keeps_first]
    assert (again.selected == first.selected) == keeps_first
    assert again.run.reliability.unreliable == (calm if keeps_first else disturbed).reliability.unreliable


# What a session keeps in mind between trials, and its final re-measurement.

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


def answering(*times: Measurement | None, baseline: Baseline | None = None) -> Any:
    """Returns a runner that answers finals with given times, and keeps what it was asked to time."""
    runner = SimpleNamespace()

    def remeasure(top_trials: tuple[BoundRecord, ...], _effort: Effort) -> FinalTimes:
        runner.top_trials = top_trials
        return FinalTimes(times, baseline)

    runner.remeasure = remeasure
    return runner


def test_a_part_of_the_budget_is_reserved_for_the_final_remeasurement() -> None:
    for budget_s, problems, top_trials, seconds in (
        (None, 1, 8, 0.0),
        (60.0, 1, 8, 2.4 + 24 * 0.3),
        (120.0, 6, 4, 6 * (2.0 + 16 * 0.3)),
        (5.0, 1, 8, 2.0),  # the search gets three fifths at least
    ):
        assert reserved_s(budget_s, problems, top_trials) == pytest.approx(seconds)
    # of fusions no baseline is started, and at most a fifth is reserved
    assert reserved_s(100.0, 2, 4, are_fusions=True) == pytest.approx(2 * (0.4 + 2 * 8 * 0.3))
    assert reserved_s(36.0, 10, 4, are_fusions=True) == pytest.approx(0.2 * 36)


def test_a_search_ends_in_time_for_the_trials_in_flight() -> None:
    progress = Progress(())
    assert in_flight_s((progress,)) == 0.0
    for number in range(5):
        progress.propose(number, number)
    assert in_flight_s((progress,)) == 0.0  # the pace is not known
    for number in range(2):
        progress.take(number, replace(SLOW, stage_s=(("compile", 9.0), ("measure", 0.5))))
    assert in_flight_s((progress,)) == pytest.approx(0.5 * (3 + 1))
    assert in_flight_s((progress, Progress(()))) == pytest.approx(0.5 * (3 + 1))


def test_where_cores_are_few_trials_take_the_time_from_one_outcome_to_the_next() -> None:
    sessions = [Progress(()), Progress(())]  # of two runs of a campaign
    for session in sessions:
        for number in range(4):
            session.propose(number, number)
        for number in range(3):
            done = replace(SLOW, stage_s=(("compile", 9.0), ("measure", 0.5)))
            session.take(number, done, elapsed_s=9.5 * (number + 1))
    assert in_flight_s(sessions[:1]) == pytest.approx(9.5 * (1 + 1))
    assert in_flight_s(sessions) == pytest.approx(9.5 * (2 + 1))


def test_what_an_earlier_session_has_measured_gives_no_pace() -> None:
    progress = Progress(tuple(proposal(number, trial(number, measurement(2.0))) for number in range(100)))
    for number in range(100):
        progress.take(number, SLOW)
    assert in_flight_s((progress,)) == 0.0
    progress.propose(100, 100)
    progress.take(100, replace(SLOW, stage_s=(("measure", 0.5),)))
    progress.propose(101, 101)
    assert in_flight_s((progress,)) == pytest.approx(0.5 * (1 + 1))


@pytest.mark.parametrize(
    ("search_s", "budget_s"), [(0.0, 0.03), (1.0, 0.03), (10.0, 0.2), (15.0, 0.3), (600.0, 0.3)]
)
def test_the_effort_follows_the_search_up_to_that_of_a_long_one(search_s: float, budget_s: float) -> None:
    effort = final_effort(search_s)
    assert effort.budget_s == pytest.approx(budget_s)
    assert effort.min_samples == FINAL_EFFORT.min_samples
    assert effort.has_offsets
    assert final_effort(search_s, left_s=1e9) == effort
    assert final_effort(15.0, left_s=2.4 + 24 * 0.1).budget_s == pytest.approx(0.1)
    assert final_effort(15.0, left_s=-1.0).budget_s == pytest.approx(0.03)
    assert final_effort(15.0, left_s=2.4 + 48 * 0.1, untimed=4).budget_s == pytest.approx(0.1)


def test_large_operands_leave_less_time_to_samples_of_short_calls() -> None:
    small, large = Matmul(16, 16, 16), Matmul(2, 1024, 2048)
    assert untimed_factor(small, 1e-6) == pytest.approx(UNTIMED, abs=0.01)
    assert untimed_factor(large, None) == untimed_factor(large, 2e-4) > UNTIMED + 1
    assert untimed_factor(large, 2.0) == pytest.approx(UNTIMED, abs=0.01)


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
    assert [each.number for each in remeasurement.choose_top_trials(tuple(trials))] == numbers


def test_the_fastest_takes_part_twice_and_what_no_longer_works_is_left_out() -> None:
    top_trials = (trial(0, measurement(1.0), script="// 0"), trial(1, measurement(1.1), script="// 1"))
    baseline = Baseline("cuBLAS 13.1.2", 0, measurement(0.9))
    runner = answering(*map(measurement, (1.0, 1.2, 1.03)), baseline=baseline)
    final_times = remeasurement.remeasure_top_trials(runner, top_trials)
    taken = [(each.record, each.script.text) for each in runner.top_trials]
    assert taken == [(each.record, each.script_text) for each in (*top_trials, top_trials[0])]
    assert [each.median_s for _, each in final_times.times] == [1.0, 1.2]
    assert final_times.noise == pytest.approx(0.03)
    assert final_times.baseline == baseline
    top_trials = (trial(0, measurement(1.0)), trial(1, measurement(1.1)))
    final_times = remeasurement.remeasure_top_trials(answering(None, measurement(1.2), None), top_trials)
    assert ([each.number for each, _ in final_times.times], final_times.noise) == ([1], None)
    assert remeasurement.noise_of(measurement(1.1), measurement(1.0)) == pytest.approx(0.1)
    assert remeasurement.noise_of(measurement(1.0, 0.06), measurement(1.0, 0.02)) == pytest.approx(0.03)


class NotingSampler(AbstractSampler):
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
    known = remeasurement.bound_record(trial(0, measurement(5.0)))
    inner = TrialRunner.local(order(), FakeTarget(), FakeTarget(), 0)
    runner = ReplayingRunner(inner, (known, None), Interruption())
    of = (method, lambda _row: candidate(7), runner, lambda number: number == 3, lambda *_: None)
    done = list(search(*of, stored=(5, 9)))
    assert [proposed for proposed, _ in done] == [(0, 5), (1, 9), (2, 102)]
    assert done[0][1] is known
    assert [bound.record.median_s for _, bound in done[1:]] == [1e-3, 1e-3]
    proposals = [("replay", 0, 5), ("replay", 1, 9), ("ask", 2)]
    told = [("tell", 5, 5.0), ("tell", 9, 1e-3), ("tell", 102, 1e-3)]
    assert method.heard == [event for pair in zip(proposals, told, strict=True) for event in pair]
    runner.close()
