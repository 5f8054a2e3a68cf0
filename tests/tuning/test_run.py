"""Runs with a fake target: what is proposed, stored, reused, answered; and what a resumed run does again."""

import dataclasses
import datetime
import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from tests.fakes import BEST_X, FakeTarget, bind, fake_factory
from tests.space.recorded.values import write_recording
from tests.tuning import fakes
from tests.tuning.test_resume import Bed, Life, bed
from tuner.core.candidate import Candidate
from tuner.core.errors import CandidateError, Stage, UsageError
from tuner.core.interfaces import AbstractRunner, BoundRecord, Effort, FinalTimes, Script
from tuner.core.machine import Machine
from tuner.core.problem import Matmul, Problem
from tuner.core.requests import FleetRequest, RunRequest
from tuner.core.runs import Baseline, LibraryTime, RunSettings, StoredTrial, TrialQuery
from tuner.db import store as store_file
from tuner.db.store import Store
from tuner.fleet import node_children
from tuner.fleet.runner import fleet_kind
from tuner.results.differences import differences
from tuner.runtime.workers.runner import RunnerOrder
from tuner.targets.backends import Backends
from tuner.targets.interface import BaselineChoice, MeasurementBackend, Plan, RunnerSettings, TargetStatus
from tuner.targets.registry import KINDS
from tuner.tuning.events import (
    BaselineFailed,
    Event,
    Interruption,
    NoiseMeasured,
    RemeasurementStarted,
    RunStarted,
    TrialDone,
)
from tuner.tuning.request import run_settings
from tuner.tuning.run import begin, resume
from tuner.tuning.tuned_run import TunedRun


def tune(store: Store, settings: RunSettings, parts: Backends | None = None) -> TunedRun:
    return begin(settings, parts or fakes.backends(), store, Interruption())


def trials_of(store: Store, run: int) -> tuple[StoredTrial, ...]:
    return store.trials(TrialQuery(run=run, sort="number"))


class AskingRunner(AbstractRunner):
    """Asks the run to end while it waits for its nth candidate."""

    def __init__(self, runner: AbstractRunner, interruption: Interruption, after: int) -> None:
        self._runner = runner
        self._interruption = interruption
        self._left = after
        self.is_closed = False

    def start(self, number: int, candidate: Candidate, effort: Effort) -> None:
        self._runner.start(number, candidate, effort)

    def finish(self) -> BoundRecord:
        self._left -= 1
        if self._left < 0:
            self._interruption.ask()
        return self._runner.finish()

    def remeasure(self, top_trials: tuple[BoundRecord, ...], effort: Effort) -> FinalTimes:
        return self._runner.remeasure(top_trials, effort)

    def close(self) -> None:
        self.is_closed = True
        self._runner.close()


def interrupted(store: Store, settings: RunSettings, after: int) -> TunedRun:
    """Runs until Ctrl-C comes while the run waits for a candidate."""
    interruption = Interruption()

    def runner(order: RunnerOrder, how: RunnerSettings) -> AbstractRunner:
        return AskingRunner(fakes.local_runner(order, how), interruption, after)

    return begin(settings, fakes.backends(runner=runner), store, interruption)


def test_a_run_finds_the_best_of_an_exhaustive_search(store: Store) -> None:
    tuned = tune(store, fakes.settings(trials=None, sampler="exhaustive"))
    assert tuned.counts.proposed == 20
    assert tuned.best is not None
    assert dict(tuned.best.record.candidate.choices)["x"] == BEST_X
    assert tuned.run.status == "done"
    assert tuned.run.baseline is not None


def noting(note: Callable[[Candidate], object]) -> Backends:
    """Calls a function with each candidate before it is started."""

    def runner(order: RunnerOrder, how: RunnerSettings) -> AbstractRunner:
        watched = fakes.local_runner(order, how)
        start = watched.start

        def tensor_map_types(number: int, candidate: Candidate, effort: Effort) -> None:
            note(candidate)
            start(number, candidate, effort)

        watched.start = tensor_map_types  # type: ignore[method-assign]
        return watched

    return fakes.backends(runner=runner)


def test_every_proposal_is_stored_before_it_runs(store: Store) -> None:
    seen: list[int] = []
    tune(store, fakes.settings(trials=5), noting(lambda _candidate: seen.append(store.info().trials)))
    assert seen == [1, 2, 3, 4, 5]


def test_a_candidate_is_bound_once(store: Store) -> None:
    asked = []

    def note(candidate: Candidate) -> Script:
        asked.append(candidate)
        return bind(candidate)

    tuned = tune(store, fakes.settings(trials=6), fakes.backends(bind=lambda *_: note))
    assert len(asked) == len(set(asked)) == 6
    for trial in trials_of(store, tuned.run.id):
        assert trial.script_text == bind(trial.record.candidate).text


def test_the_same_code_is_timed_once_in_a_run(store: Store) -> None:
    """``comment`` changes the script but not the code."""
    tuned = tune(store, fakes.settings(trials=None, sampler="exhaustive"))
    assert tuned.counts.reused == 10
    assert tuned.counts.measured == 20


@pytest.mark.slow
def test_a_second_run_reuses_everything_and_says_so(store: Store) -> None:
    first = tune(store, fakes.settings(trials=6))
    second = tune(store, fakes.settings(trials=6))
    assert second.counts.reused == second.counts.proposed == 6
    originals = {trial.id for trial in trials_of(store, first.run.id)}
    for trial in trials_of(store, second.run.id):
        assert trial.record.reused_from in originals


@pytest.mark.slow
def test_fresh_measures_again_what_another_run_has_measured(store: Store) -> None:
    tune(store, fakes.settings(trials=None, sampler="exhaustive"))
    fresh = tune(store, fakes.settings(trials=None, sampler="exhaustive", fresh=True))
    assert fresh.counts.reused == 10  # the same code twice in this run
    for trial in trials_of(store, fresh.run.id):
        assert trial.record.reused_from is None or trial.record.reused_from > 20


def test_top_trials_are_timed_again_and_the_noise_is_stored(store: Store) -> None:
    events: list[Event] = []
    tuned = begin(fakes.settings(), fakes.backends(), store, Interruption(), events.append)
    final_times = [trial for trial in trials_of(store, tuned.run.id) if trial.final is not None]
    assert RemeasurementStarted(len(final_times)) in events
    assert 0 < len(final_times) <= 8
    assert tuned.run.noise == 0.0  # the fake's clock is exact
    assert NoiseMeasured(0.0) in events


def test_observers_hear_the_start_and_every_trial(store: Store) -> None:
    events: list[Event] = []
    begin(fakes.settings(trials=4), fakes.backends(), store, Interruption(), events.append)
    assert isinstance(events[0], RunStarted)
    assert (events[0].cartesian, events[0].feasible, events[0].proposed_before) == (20, 20, 0)
    done = [event for event in events if isinstance(event, TrialDone)]
    assert [event.number for event in done] == [0, 1, 2, 3]
    assert done[-1].counts.measured == 4
    assert done[-1].best is not None


def test_a_baseline_that_fails_is_reported_and_ends_nothing(store: Store) -> None:
    events: list[Event] = []
    backends = fakes.backends(baseline=fakes.no_baseline, runner=fakes.runner_without_baseline)
    tuned = begin(fakes.settings(trials=3), backends, store, Interruption(), events.append)
    assert BaselineFailed("baseline: exited with status 3") in events
    assert tuned.run.baseline is None
    assert tuned.best is not None


def test_no_working_candidate_gives_no_answer(store: Store) -> None:
    backends = fakes.backends(bind=lambda *_: fakes.failing_bind)
    tuned = tune(store, fakes.settings(trials=3), backends)
    assert tuned.selected is None
    assert tuned.counts.failed == 3
    assert tuned.run.status == "done"


def test_a_time_budget_ends_the_search(store: Store) -> None:
    def slow(candidate: Candidate) -> Script:
        time.sleep(0.02)
        return bind(candidate)

    backends = fakes.backends(plan=fakes.plan({"x": tuple(range(1000))}), bind=lambda *_: slow)
    tuned = tune(store, fakes.settings(trials=None, budget_s=0.3), backends)
    assert 1 <= tuned.counts.proposed < 100


def test_ctrl_c_stores_what_was_measured(store: Store) -> None:
    tuned = interrupted(store, fakes.settings(), after=5)
    assert tuned.is_interrupted
    assert tuned.counts.measured == 5
    assert tuned.counts.proposed == 7  # two were in flight
    assert store.run(tuned.run.id).seconds is not None


@pytest.mark.parametrize("sampler", ["random", "tpe"])
def test_an_interrupted_run_resumes_to_the_trials_of_an_uninterrupted_one(store: Store, sampler: str) -> None:
    settings = fakes.settings(trials=14, sampler=sampler, fresh=True)
    uninterrupted = tune(store, settings)
    broken = interrupted(store, settings, after=6)
    resumed = resume(broken.run.id, fakes.backends(), store, Interruption())
    rows = [trial.row for trial in trials_of(store, uninterrupted.run.id)]
    assert [trial.row for trial in trials_of(store, resumed.run.id)] == rows
    assert resumed.run.id == broken.run.id
    assert resumed.run.status == "done"
    assert resumed.counts.measured == 14


def test_a_proposal_without_outcome_is_run_first_under_its_number(store: Store) -> None:
    broken = interrupted(store, fakes.settings(), after=4)
    pending = [each for each in store.proposals(broken.run.id) if each.trial is None]
    assert [each.number for each in pending] == [4, 5]
    events: list[Event] = []
    resume(broken.run.id, fakes.backends(), store, Interruption(), events.append)
    done = [event for event in events if isinstance(event, TrialDone)]
    assert [event.number for event in done] == list(range(4, 12))
    assert {event.trial for event in done} >= {each.id for each in pending}
    assert isinstance(events[0], RunStarted)
    assert events[0].proposed_before == 6


@pytest.mark.slow
def test_a_resumed_run_measures_nothing_twice(store: Store) -> None:
    broken = interrupted(store, fakes.settings(trials=8), after=5)
    before = {trial.id: trial.record for trial in trials_of(store, broken.run.id)}
    started: list[Candidate] = []
    resume(broken.run.id, noting(started.append), store, Interruption())
    assert len(started) == 8 - 5
    after = {trial.id: trial.record for trial in trials_of(store, broken.run.id)}
    assert all(after[trial] == record for trial, record in before.items())


def test_a_run_that_is_done_can_be_resumed_without_new_trials(store: Store) -> None:
    done = tune(store, fakes.settings(trials=5))
    again = resume(done.run.id, fakes.backends(), store, Interruption())
    assert again.counts == done.counts
    assert again.selected is not None


def test_seconds_add_over_the_sessions_of_a_run(store: Store) -> None:
    broken = interrupted(store, fakes.settings(), after=4)
    resumed = resume(broken.run.id, fakes.backends(), store, Interruption())
    assert resumed.seconds > (broken.run.seconds or 0.0) > 0.0


def test_the_bench_is_closed_when_something_breaks(store: Store) -> None:
    runners: list[AskingRunner] = []

    def runner(order: RunnerOrder, how: RunnerSettings) -> AbstractRunner:
        runners.append(AskingRunner(fakes.local_runner(order, how), Interruption(), 99))
        return runners[-1]

    def broken(problem: Matmul, threads: int, seed: int) -> None:  # type: ignore[valid-type]
        raise RuntimeError("a defect")

    with pytest.raises(RuntimeError, match="a defect"):
        tune(store, fakes.settings(), fakes.backends(runner=runner, baseline=broken))
    assert runners[0].is_closed
    assert store.runs(1)[0].status == "interrupted"


def changed(candidate: Candidate) -> Script:
    return Script.of(bind(candidate).text + "// changed\n")


def unbound(_candidate: Candidate) -> Script:
    raise CandidateError(Stage.BIND, "no such knob")


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"machine": lambda _: fakes.OTHER_MACHINE}, "was made on 'fake', this machine is 'another'"),
        # else finals would time new code in the name of the old one
        ({"bind": lambda *_: changed}, "strategy 'fake' was changed since; start a new run"),
        ({"bind": lambda *_: unbound}, "strategy 'fake' was changed since; start a new run"),
        (
            {"compiler": lambda _: fakes.OTHER_COMPILER},
            r"was made by another version of the compiler; changed: .*; start a new run",
        ),
        (
            {"plan": fakes.plan({"x": tuple(range(20))})},
            r"row \d+ of its search space is no longer fake\(.*new run",
        ),
    ],
    ids=["machine", "script", "no script", "compiler", "rows"],
)
def test_a_run_does_not_resume_as_another(store: Store, changes: dict[str, Any], message: str) -> None:
    interrupted(store, fakes.settings(), after=2)
    with pytest.raises(UsageError, match=f"run 1: {message}"):
        resume(1, fakes.backends(**changes), store, Interruption())
    assert store.run(1).status == "interrupted"


def test_an_unknown_run_cannot_resume(store: Store) -> None:
    with pytest.raises(UsageError, match="run: found 7, allowed none"):
        resume(7, fakes.backends(), store, Interruption())


def empty(_settings: RunSettings, _machine: Machine) -> Plan:
    raise UsageError("constraint 'x > 99' leaves nothing")


@pytest.mark.parametrize(
    ("settings", "parts", "message"),
    [
        (fakes.settings(problem=Matmul(100_000, 100_000, 100_000)), {}, "GiB, available 1.0 GiB"),
        (fakes.settings(sampler="guess"), {}, "sampler: found 'guess', allowed"),
        (fakes.settings(), {"plan": empty}, "x > 99"),
    ],
)
def test_what_cannot_begin_is_refused_before_anything_is_stored(
    store: Store, settings: RunSettings, parts: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        tune(store, settings, fakes.backends(**parts))
    assert store.runs() == ()


def test_real_processes_serve_a_run(store: Store) -> None:
    backends = fakes.backends(runner=fakes.worker_runner(fake_factory()))
    tuned = tune(store, fakes.settings(trials=8, workers=2), backends)
    assert tuned.counts.measured == 8
    assert tuned.selected is not None


def test_fakes_share_their_machine_with_the_target() -> None:
    assert dataclasses.asdict(fakes.MACHINE) == dataclasses.asdict(FakeTarget().machine())


@pytest.mark.slow
def test_a_fresh_run_knows_its_own_outcomes_whatever_later_runs_found(store: Store) -> None:
    """The store recalls the latest outcome, which may be of a run that came between kill and resume."""
    settings = fakes.settings(trials=20, sampler="exhaustive", fresh=True)
    broken = interrupted(store, settings, after=7)
    uninterrupted = tune(store, settings)
    resumed = resume(broken.run.id, fakes.backends(), store, Interruption())
    assert resumed.counts == uninterrupted.counts
    assert differences(trials_of(store, uninterrupted.run.id), trials_of(store, resumed.run.id)) == ()


def test_observers_count_as_the_store_does(store: Store) -> None:
    events: list[Event] = []
    broken = interrupted(store, fakes.settings(trials=14, fresh=True), after=6)
    done = resume(broken.run.id, fakes.backends(), store, Interruption(), events.append)
    last = [event for event in events if isinstance(event, TrialDone)][-1]
    assert last.counts == store.counts(done.run.id) == done.counts


# A run is compared with the baseline that its user chose, and so is what continues it.

PROBLEM = Matmul(8, 8, 8)


LIBRARIES = (
    LibraryTime("fast", "FastBLAS 2.0", 1.0, (1.0, 1.0)),
    LibraryTime("broken", "", failure="crashed"),
)


def chosen(choice: str) -> Callable[[Problem, int, int], Baseline]:
    def baseline(problem: Problem, threads: int, seed: int) -> Baseline:
        found = fakes.baseline(problem, threads, seed)
        return dataclasses.replace(found, name=f"{choice} of the user", libraries=LIBRARIES)

    return baseline


def parts_with_a_choice(*installed: str) -> Backends:
    """Returns backends of one target, whose baseline may be one of ``installed``."""

    def require(choice: str, _problem: Problem) -> None:
        if choice not in installed:
            raise UsageError(f"baseline {choice}: not installed", f"pip install {choice}")

    def outcomes(choice: str) -> MeasurementBackend:
        alone = fakes.changed_kind(fakes.FAKE, baseline=chosen(choice), runner=fakes.runner_without_baseline)
        return alone.outcomes

    backends = fakes.backends()
    kind = dataclasses.replace(
        backends.kinds["fake"], baselines=BaselineChoice(require, outcomes, lambda _name, _problem: "")
    )
    return dataclasses.replace(backends, kinds={"fake": kind})


def test_the_chosen_baseline_is_measured_and_kept_when_the_run_is_resumed(store: Store) -> None:
    parts = parts_with_a_choice("mkl")
    settings = run_settings(RunRequest(PROBLEM, trials=3, baseline="mkl"), parts)
    run = begin(settings, parts, store, Interruption()).run
    assert store.run(run.id).settings.baseline_library == "mkl"
    found = store.run(run.id).baseline
    assert found is not None
    assert (found.name, found.libraries) == ("mkl of the user", LIBRARIES)
    again = resume(run.id, parts, store, Interruption(), retime=True).run.baseline
    assert again is not None
    assert (again.name, again.libraries) == ("mkl of the user", LIBRARIES)


def test_without_a_choice_a_run_has_the_default(store: Store) -> None:
    parts = parts_with_a_choice("mkl")
    run = begin(run_settings(RunRequest(PROBLEM, trials=3), parts), parts, store, Interruption()).run
    assert store.run(run.id).settings.baseline_library == ""
    assert run.baseline is not None
    assert (run.baseline.name, run.baseline.libraries) == ("FakeBLAS 1.0", ())


def test_a_missing_library_is_refused_before_anything_is_stored_and_before_a_run_is_resumed(
    store: Store,
) -> None:
    request = RunRequest(PROBLEM, trials=3, baseline="mkl")
    with pytest.raises(UsageError, match=r"^baseline mkl: not installed; pip install mkl$"):
        run_settings(request, parts_with_a_choice())
    parts = parts_with_a_choice("mkl")
    run = begin(run_settings(request, parts), parts, store, Interruption()).run
    with pytest.raises(UsageError, match=r"^baseline mkl: not installed; pip install mkl$"):
        resume(run.id, parts_with_a_choice(), store, Interruption(), retime=True)


def test_targets_with_one_baseline_refuse_a_choice() -> None:
    backends = fakes.backends()
    kind = dataclasses.replace(backends.kinds["fake"], baselines=KINDS["cuda"].baselines)
    with pytest.raises(UsageError, match=r"^--baseline best cannot be combined with this target: the base"):
        run_settings(
            RunRequest(PROBLEM, baseline="best"), dataclasses.replace(backends, kinds={"fake": kind})
        )
    with pytest.raises(UsageError, match=r"^--baseline best cannot be combined with this target"):
        KINDS["simulator"].outcomes_with("best")


def test_a_fleet_refuses_a_choice() -> None:
    kind = fleet_kind(parts_with_a_choice("mkl").kinds["fake"], FleetRequest("postgresql://nowhere"))
    with pytest.raises(UsageError, match=r"^--baseline mkl cannot be combined with --fleet: nodes compare"):
        kind.require_baseline("mkl", PROBLEM)
    kind.require_baseline("", PROBLEM)


def test_a_recording_decides_its_baseline(tmp_path: Path) -> None:
    request = RunRequest(PROBLEM, f"replay:{write_recording(tmp_path)}", baseline="mkl")
    with pytest.raises(UsageError, match=r"^baseline 'mkl' cannot be combined with replay:FILE"):
        run_settings(request, fakes.backends())


def test_the_cpu_says_what_is_unknown_before_anything_is_tuned() -> None:
    parts = fakes.backends((TargetStatus("cpu", True, "here"),))
    cpu = dataclasses.replace(parts.kinds["cpu"], baselines=KINDS["cpu"].baselines)
    parts = dataclasses.replace(parts, kinds={"cpu": cpu})
    with pytest.raises(
        UsageError, match=r"^baseline: found 'mlk', allowed best, openblas, mkl.*did you mean mkl"
    ):
        run_settings(RunRequest(PROBLEM, baseline="mlk"), parts)
    assert run_settings(RunRequest(PROBLEM, baseline="openblas"), parts).baseline_library == "openblas"


# The wall clock is set back and forward by an hour while runs go on: only dates change.

__all__ = ["bed"]


HOUR = datetime.timedelta(hours=1)


STEPS = (0 * HOUR, -HOUR, HOUR, 0 * HOUR, HOUR, -2 * HOUR)


HELD = 3  # looks at the clock between two steps


class SteppedClock(datetime.datetime):
    """The wall clock of a machine that is set again and again, to an hour before or after the true time."""

    looks = itertools.count()

    @classmethod
    def now(cls, zone: datetime.tzinfo | None = None) -> Self:
        """Returns the moment by a clock that is set at every third look."""
        return super().now(zone) + STEPS[next(cls.looks) // HELD % len(STEPS)]


class SteppedModule:
    """What a file that imports ``datetime`` finds."""

    datetime, timedelta, UTC, date = SteppedClock, datetime.timedelta, datetime.UTC, datetime.date


@pytest.fixture
def stepped(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Lets the wall clock jump, wherever it is looked at."""
    SteppedClock.looks = itertools.count()
    for file in (store_file, node_children):
        monkeypatch.setattr(file, "datetime", SteppedModule)
    true_s = time.time
    monkeypatch.setattr(
        time, "time", lambda: true_s() + STEPS[next(SteppedClock.looks) % len(STEPS)].total_seconds()
    )
    yield
    assert next(SteppedClock.looks) > 0  # somebody looked


def undated(trials: tuple[StoredTrial, ...]) -> list[tuple[object, ...]]:
    """Returns what a trial is, without ids, dates and seconds, which differ between any two runs."""
    return [(trial.number, trial.row, trial.record.candidate, trial.record.status) for trial in trials]


@pytest.mark.slow
def test_a_run_has_the_same_trials_in_the_same_order_and_its_seconds(bed: Bed, stepped: None) -> None:
    settings = bed.settings("random", 2)
    with pytest.MonkeyPatch.context() as true:
        true.setattr(store_file, "datetime", datetime)
        expected = undated(bed.trials(begin(settings, fakes.backends(), bed.store, Interruption()).run.id))
    started_s = time.monotonic()
    run = begin(settings, fakes.backends(), bed.store, Interruption()).run
    took_s = time.monotonic() - started_s
    assert run.seconds is not None
    assert 0.0 < run.seconds <= took_s
    listed = bed.store.trials(TrialQuery(run=run.id))  # sorted by what ``history`` sorts by
    assert undated(listed) == expected
    assert listed[::-1] == bed.store.trials(TrialQuery(run=run.id, sort="-created"))
    assert next(SteppedClock.looks) > HELD * len(STEPS)  # the clock had each of its steps


def test_a_step_of_the_clock_does_not_spend_the_budget_of_a_killed_run(
    bed: Bed, stepped: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is killed after its first proposals, before an outcome says how long it took."""
    monkeypatch.setattr(SteppedClock, "looks", itertools.chain([0], itertools.repeat(2 * HELD)))  # forward
    settings = bed.settings("random", 1)
    life = Life(7)
    half_an_hour = dataclasses.replace(settings, budget_s=1800.0)
    bed.lived(life, lambda parts, store, stop: begin(half_an_hour, parts, store, stop))
    run = bed.store.runs(1)[0]
    assert bed.store.proposals(run.id)
    assert bed.trials(run.id) == ()
    done = resume(run.id, fakes.backends(), bed.store, Interruption())
    assert done.counts.proposed == settings.trials


@pytest.mark.slow
def test_the_latest_run_is_the_one_that_was_stored_last(stepped: None, tmp_path: object) -> None:
    with Store.open(f"{tmp_path}/history.db") as store:
        begun = [begin(fakes.settings(), fakes.backends(), store, Interruption()).run.id for _ in range(4)]
        found = store.runs()
        assert [run.id for run in found] == begun[::-1]
        assert [run.id for run in store.runs(2)] == begun[:1:-1]
        dates = [run.created for run in found]
    assert dates != sorted(dates, reverse=True)


def test_a_node_s_intervals_are_as_long_as_they_were(stepped: None) -> None:
    for _ in range(HELD * len(STEPS)):
        started_s = time.monotonic()
        interval = node_children.began()()
        assert 0.0 <= (interval.ended - interval.began).total_seconds() <= time.monotonic() - started_s + 1e-6
