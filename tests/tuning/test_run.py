"""Runs with a fake target: what is proposed, stored, reused, answered; and what a resumed run does again."""

import dataclasses
import datetime
import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from tests.fakes import BEST_X, bind, fake_factory
from tests.space.recorded.values import write_recording
from tests.tuning import fakes
from tests.tuning.test_resume import Bed, Life, bed
from tuner.core.candidate import Candidate
from tuner.core.errors import CandidateError, Stage, UsageError
from tuner.core.interfaces import AbstractRunner, BoundRecord, Effort, Script
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


def interrupted(store: Store, settings: RunSettings, after: int) -> TunedRun:
    """Runs until Ctrl-C comes while the run waits for the candidate after ``after`` others."""
    interruption, left = Interruption(), itertools.count(after, -1)

    def runner(order: RunnerOrder, how: RunnerSettings) -> AbstractRunner:
        asking = fakes.local_runner(order, how)
        finish = asking.finish

        def asked() -> BoundRecord:
            if next(left) <= 0:
                interruption.ask()
            return finish()

        asking.finish = asked  # type: ignore[method-assign]
        return asking

    return begin(settings, fakes.backends(runner=runner), store, interruption)


def test_an_exhaustive_search_finds_the_best_and_times_the_same_code_once(store: Store) -> None:
    """``comment`` changes the script but not the code."""
    tuned = tune(store, fakes.settings(trials=None, sampler="exhaustive"))
    assert (tuned.counts.proposed, tuned.counts.measured, tuned.counts.reused) == (20, 20, 10)
    assert tuned.best is not None
    assert dict(tuned.best.record.candidate.choices)["x"] == BEST_X
    assert tuned.run.status == "done"
    assert tuned.run.baseline is not None


def noting(note: Callable[[Candidate], object]) -> Backends:
    """Calls a function with each candidate before it is started."""

    def runner(order: RunnerOrder, how: RunnerSettings) -> AbstractRunner:
        watched = fakes.local_runner(order, how)
        start = watched.start

        def noted(number: int, candidate: Candidate, effort: Effort) -> None:
            note(candidate)
            start(number, candidate, effort)

        watched.start = noted  # type: ignore[method-assign]
        return watched

    return fakes.backends(runner=runner)


def test_every_proposal_is_stored_before_it_runs_and_a_candidate_is_bound_once(store: Store) -> None:
    seen: list[int] = []
    tune(store, fakes.settings(trials=5), noting(lambda _candidate: seen.append(store.info().trials)))
    assert seen == [1, 2, 3, 4, 5]
    asked = []

    def note(candidate: Candidate) -> Script:
        asked.append(candidate)
        return bind(candidate)

    tuned = tune(store, fakes.settings(trials=6), fakes.backends(bind=lambda *_: note))
    assert len(asked) == len(set(asked)) == 6
    for trial in trials_of(store, tuned.run.id):
        assert trial.script_text == bind(trial.record.candidate).text


@pytest.mark.slow
def test_a_second_run_reuses_everything_and_a_fresh_one_what_it_has_measured_itself(store: Store) -> None:
    first, second = (tune(store, fakes.settings(trials=None, sampler="exhaustive")) for _ in range(2))
    assert second.counts.reused == second.counts.proposed == 20
    originals = {trial.id for trial in trials_of(store, first.run.id)}
    assert {trial.record.reused_from for trial in trials_of(store, second.run.id)} <= originals
    fresh = tune(store, fakes.settings(trials=None, sampler="exhaustive", fresh=True))
    assert fresh.counts.reused == 10  # the same code twice in this run
    for trial in trials_of(store, fresh.run.id):
        assert trial.record.reused_from is None or trial.record.reused_from > 40


def test_observers_hear_the_start_every_trial_and_the_final_remeasurement(store: Store) -> None:
    events: list[Event] = []
    tuned = begin(fakes.settings(), fakes.backends(), store, Interruption(), events.append)
    assert isinstance(events[0], RunStarted)
    assert (events[0].cartesian, events[0].feasible, events[0].proposed_before) == (20, 20, 0)
    done = [event for event in events if isinstance(event, TrialDone)]
    assert [event.number for event in done] == list(range(12))
    assert done[-1].counts.measured == 12
    assert done[-1].best is not None
    final_times = [trial for trial in trials_of(store, tuned.run.id) if trial.final is not None]
    assert RemeasurementStarted(len(final_times)) in events
    assert 0 < len(final_times) <= 8
    assert tuned.run.noise == 0.0  # the fake's clock is exact
    assert NoiseMeasured(0.0) in events


def test_failures_of_the_baseline_or_of_all_candidates_end_nothing(store: Store) -> None:
    events: list[Event] = []
    backends = fakes.backends(baseline=fakes.no_baseline, runner=fakes.runner_without_baseline)
    tuned = begin(fakes.settings(trials=3), backends, store, Interruption(), events.append)
    assert BaselineFailed("baseline: exited with status 3") in events
    assert tuned.run.baseline is None
    assert tuned.best is not None
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
    spent_before = tune(store, fakes.settings(trials=None, budget_s=1e-9, fresh=True))
    assert (spent_before.counts.measured, spent_before.run.status) == (1, "done")


@pytest.mark.parametrize("sampler", ["random", "tpe"])
def test_an_interrupted_run_resumes_to_the_same_trials_measuring_none_twice(
    store: Store, sampler: str
) -> None:
    settings = fakes.settings(trials=14, sampler=sampler, fresh=True)
    uninterrupted = tune(store, settings)
    broken = interrupted(store, settings, after=6)
    before = {trial.id: trial.record for trial in trials_of(store, broken.run.id)}
    started: list[Candidate] = []
    resumed = resume(broken.run.id, noting(started.append), store, Interruption())
    trials = trials_of(store, resumed.run.id)
    assert [trial.row for trial in trials] == [trial.row for trial in trials_of(store, uninterrupted.run.id)]
    assert (resumed.run.id, resumed.run.status, resumed.counts.measured) == (broken.run.id, "done", 14)
    assert len(started) == 14 - 6
    assert {trial.id: trial.record for trial in trials}.items() >= before.items()


def test_ctrl_c_stores_what_was_measured_and_what_was_in_flight_is_run_first(store: Store) -> None:
    broken = interrupted(store, fakes.settings(trials=14, fresh=True), after=4)
    assert broken.is_interrupted
    assert (broken.counts.measured, broken.counts.proposed) == (4, 6)  # two were in flight
    assert store.run(broken.run.id).seconds is not None
    pending = [each for each in store.proposals(broken.run.id) if each.trial is None]
    assert [each.number for each in pending] == [4, 5]
    events: list[Event] = []
    resumed = resume(broken.run.id, fakes.backends(), store, Interruption(), events.append)
    done = [event for event in events if isinstance(event, TrialDone)]
    assert [event.number for event in done] == list(range(4, 14))
    assert {event.trial for event in done} >= {each.id for each in pending}
    assert isinstance(events[0], RunStarted)
    assert events[0].proposed_before == 6
    assert done[-1].counts == store.counts(resumed.run.id) == resumed.counts
    assert resumed.seconds > (broken.run.seconds or 0.0) > 0.0  # of both sessions


def test_the_runner_is_closed_when_something_breaks(store: Store) -> None:
    closed: list[AbstractRunner] = []

    def runner(order: RunnerOrder, how: RunnerSettings) -> AbstractRunner:
        watched = fakes.local_runner(order, how)
        watched.close = lambda: closed.append(watched)  # type: ignore[method-assign]
        return watched

    def broken(problem: Problem, threads: int, seed: int) -> Baseline:
        raise RuntimeError("a defect")

    with pytest.raises(RuntimeError, match="a defect"):
        tune(store, fakes.settings(), fakes.backends(runner=runner, baseline=broken))
    assert len(closed) == 1
    assert store.runs(1)[0].status == "interrupted"


def changed(candidate: Candidate) -> Script:
    return Script.of(bind(candidate).text + "// changed\n")


def unbound(_candidate: Candidate) -> Script:
    raise CandidateError(Stage.BIND, "no such knob")


def empty(_settings: RunSettings, _machine: Machine) -> Plan:
    raise UsageError("constraint 'x > 99' leaves nothing")


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
    with pytest.raises(UsageError, match="run: found 7, allowed 1 to 1"):
        resume(7, fakes.backends(), store, Interruption())


@pytest.mark.parametrize(
    ("settings", "parts", "message"),
    [
        (fakes.settings(problem=Matmul(100_000, 100_000, 100_000)), {}, "GiB, available 1.0 GiB"),
        (fakes.settings(sampler="guess"), {}, "sampler: found 'guess', allowed"),
        (fakes.settings(), {"plan": empty}, "x > 99"),
        (fakes.settings(workers=10**6), {}, "workers: found 1000000, allowed 1 to"),
        (
            fakes.settings(threads=10**6),
            {},
            "threads: found 1000000, allowed up to 2, the processors of fake",
        ),
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


@pytest.mark.slow
def test_a_fresh_run_knows_its_own_outcomes_whatever_later_runs_found(store: Store) -> None:
    """The store recalls the latest outcome, which may be of a run that came between kill and resume."""
    settings = fakes.settings(trials=20, sampler="exhaustive", fresh=True)
    broken = interrupted(store, settings, after=7)
    uninterrupted = tune(store, settings)
    resumed = resume(broken.run.id, fakes.backends(), store, Interruption())
    assert resumed.counts == uninterrupted.counts
    assert differences(trials_of(store, uninterrupted.run.id), trials_of(store, resumed.run.id)) == ()


# A run is compared with the baseline that its user chose, and so is what continues it.

PROBLEM = Matmul(8, 8, 8)
LIBRARIES = (
    LibraryTime("fast", "FastBLAS 2.0", 1.0, (1.0, 1.0)),
    LibraryTime("broken", "", failure="crashed"),
)


def parts_with_a_choice(*installed: str) -> Backends:
    """Returns backends of one target, whose baseline may be one of ``installed``."""

    def require(choice: str, _problem: Problem) -> None:
        if choice not in installed:
            raise UsageError(f"baseline {choice}: not installed", f"pip install {choice}")

    def outcomes(choice: str) -> MeasurementBackend:
        def chosen(problem: Problem, threads: int, seed: int) -> Baseline:
            found = fakes.baseline(problem, threads, seed)
            return dataclasses.replace(found, name=f"{choice} of the user", libraries=LIBRARIES)

        return fakes.changed_kind(fakes.FAKE, baseline=chosen, runner=fakes.runner_without_baseline).outcomes

    backends = fakes.backends()
    baselines = BaselineChoice(require, outcomes, lambda _name, _problem: "")
    kind = dataclasses.replace(backends.kinds["fake"], baselines=baselines)
    return dataclasses.replace(backends, kinds={"fake": kind})


@pytest.mark.parametrize(
    ("choice", "expected"), [("mkl", ("mkl of the user", LIBRARIES)), ("", ("FakeBLAS 1.0", ()))]
)
def test_the_chosen_or_default_baseline_is_measured_and_kept_when_the_run_is_resumed(
    store: Store, choice: str, expected: tuple[str, tuple[LibraryTime, ...]]
) -> None:
    parts = parts_with_a_choice("mkl")
    settings = run_settings(RunRequest(PROBLEM, trials=3, baseline=choice), parts)
    run = begin(settings, parts, store, Interruption()).run
    assert store.run(run.id).settings.baseline_library == choice
    again = resume(run.id, parts, store, Interruption(), retime=True).run
    for baseline in (store.run(run.id).baseline, again.baseline):
        assert baseline is not None
        assert (baseline.name, baseline.libraries) == expected


def test_a_missing_library_is_refused_before_a_run_begins_and_is_resumed(store: Store) -> None:
    request, missing = (
        RunRequest(PROBLEM, trials=3, baseline="mkl"),
        r"^baseline mkl: not installed; pip install mkl$",
    )
    with pytest.raises(UsageError, match=missing):
        run_settings(request, parts_with_a_choice())
    parts = parts_with_a_choice("mkl")
    run = begin(run_settings(request, parts), parts, store, Interruption()).run
    with pytest.raises(UsageError, match=missing):
        resume(run.id, parts_with_a_choice(), store, Interruption(), retime=True)


def with_baselines(kind: str) -> Backends:
    """Returns backends of fakes, one of which has the baselines of a real kind."""
    backends = fakes.backends((TargetStatus(kind if kind == "cpu" else "fake", True, "here"),))
    kinds = {
        name: dataclasses.replace(each, baselines=KINDS[kind].baselines)
        for name, each in backends.kinds.items()
    }
    return dataclasses.replace(backends, kinds=kinds)


def test_targets_with_one_baseline_refuse_a_choice_and_the_cpu_an_unknown_one(tmp_path: Path) -> None:
    replay = f"replay:{write_recording(tmp_path)}"
    for backends, request, message in (
        (
            with_baselines("cuda"),
            RunRequest(PROBLEM, baseline="best"),
            "^--baseline best cannot be combined with this target: the base",
        ),
        (
            with_baselines("cpu"),
            RunRequest(PROBLEM, baseline="mlk"),
            "^baseline: found 'mlk', allowed best, openblas, mkl.*did you mean mkl",
        ),
        (
            fakes.backends(),
            RunRequest(PROBLEM, replay, baseline="mkl"),
            "^baseline 'mkl' cannot be combined with replay:FILE",
        ),
    ):
        with pytest.raises(UsageError, match=message):
            run_settings(request, backends)
    allowed = RunRequest(PROBLEM, baseline="openblas")
    assert run_settings(allowed, with_baselines("cpu")).baseline_library == "openblas"
    with pytest.raises(UsageError, match=r"^--baseline best cannot be combined with this target"):
        KINDS["simulator"].outcomes_with("best")
    kind = fleet_kind(parts_with_a_choice("mkl").kinds["fake"], FleetRequest("postgresql://nowhere"))
    with pytest.raises(UsageError, match=r"^--baseline mkl cannot be combined with --fleet: nodes compare"):
        kind.require_baseline("mkl", PROBLEM)
    kind.require_baseline("", PROBLEM)


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


def test_a_step_of_the_clock_spends_no_budget(
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
def test_the_latest_run_is_the_one_that_was_stored_last(stepped: None, store: Store) -> None:
    begun = [begin(fakes.settings(), fakes.backends(), store, Interruption()).run.id for _ in range(4)]
    assert [run.id for run in store.runs()] == begun[::-1]
    assert [run.id for run in store.runs(2)] == begun[:1:-1]
    dates = [run.created for run in store.runs()]
    assert dates != sorted(dates, reverse=True)


def test_a_node_s_intervals_are_as_long_as_they_were(stepped: None) -> None:
    for _ in range(HELD * len(STEPS)):
        started_s = time.monotonic()
        interval = node_children.began()()
        assert 0.0 <= (interval.ended - interval.began).total_seconds() <= time.monotonic() - started_s + 1e-6
