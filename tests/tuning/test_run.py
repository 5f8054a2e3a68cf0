"""Runs with a fake target: what is proposed, stored, reused, answered; and what a resumed run does again."""

import dataclasses
import itertools
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.default_suite import ALL
from tests.fakes import BEST_X, TOO_MUCH_MEMORY, FakeTarget, bind, fake_factory
from tests.results.regression.test_gate import audited
from tests.support.run_differences import differences
from tests.tuning import fakes
from tests.tuning.fakes import candidates_of, present, trials_of
from tuner.core.candidate import Candidate, TargetName, Value
from tuner.core.errors import CandidateError, Failure, Stage, UsageError
from tuner.core.interfaces import AbstractRunner, BoundRecord, Effort, Script
from tuner.core.machine import Machine, processor_class
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.core.queries import TrialQuery
from tuner.core.records import Verdict
from tuner.core.roofline import Roofline
from tuner.core.runs import Run, RunSettings
from tuner.db.store import Store
from tuner.results.best_trials import best_here, best_known
from tuner.results.regression.gate import recorded_entry
from tuner.runtime.timing_lock import LockWait
from tuner.runtime.workers.runner import RunnerOrder
from tuner.targets.backends import Backends
from tuner.targets.target import Plan, RunnerSettings
from tuner.tuning.events import (
    BaselineFailed,
    CompilesAgain,
    Event,
    Interruption,
    NoiseMeasured,
    RemeasurementStarted,
    RunStarted,
    SpaceExhausted,
    TrialDone,
)
from tuner.tuning.run import begin, resume, transfer_settings
from tuner.tuning.tuned_run import TunedRun

OTHER_SCRIPT = r"strategy 'fake' was changed since, and fake\(.*\) has other code; start a new run"
OTHER_VERSION = r"was made by another version of the compiler; changed: .*; start a new run"


def runner_with(**methods: Callable[..., Callable[..., Any]]) -> Any:
    """Returns a maker of runners some of whose methods are replaced, each by what is made of the real one."""

    def runner(order: RunnerOrder, how: RunnerSettings) -> AbstractRunner:
        watched = fakes.local_runner(order, how)
        for name, made_of in methods.items():
            setattr(watched, name, made_of(getattr(watched, name)))
        return watched

    return runner


def interrupted(store: Store, after: int, **changes: Any) -> TunedRun:
    """Runs until Ctrl-C comes while the run waits for the candidate after ``after`` others."""
    interruption, left = Interruption(), itertools.count(after, -1)

    def ask_then(finish: Callable[[], BoundRecord]) -> BoundRecord:
        if next(left) <= 0:
            interruption.ask()
        return finish()

    runner = runner_with(finish=lambda finish: partial(ask_then, finish))
    return begin(fakes.settings(**changes), fakes.backends(runner=runner), store, interruption)


def test_a_budget_counts_from_when_the_command_began(store: Store) -> None:
    settings, ago_s = fakes.settings(trials=None, budget_s=900.0), time.monotonic() - 1000
    assert begin(settings, fakes.backends(), store, Interruption(), began_s=ago_s).counts.proposed == 1


def test_an_exhaustive_search_finds_the_best_and_times_the_same_code_once(store: Store) -> None:
    """``comment`` changes the script but not the code."""
    tuned = fakes.tune(store, trials=None, sampler="exhaustive")
    assert (tuned.counts.proposed, tuned.counts.measured, tuned.counts.reused) == (20, 20, 10)
    assert tuned.best is not None
    assert (dict(tuned.best.record.candidate.choices)["x"], tuned.run.status) == (BEST_X, "done")
    assert tuned.run.baseline is not None


def noting(note: Callable[[Candidate], object]) -> Backends:
    def noted(start: Callable[..., None], number: int, candidate: Candidate, effort: Effort) -> None:
        note(candidate)
        start(number, candidate, effort)

    return fakes.backends(runner=runner_with(start=lambda start: partial(noted, start)))


def test_every_proposal_is_stored_before_it_runs_and_a_candidate_is_bound_once(store: Store) -> None:
    seen: list[int] = []
    fakes.tune(store, noting(lambda _candidate: seen.append(store.info().trials)), trials=5)
    assert seen == [1, 2, 3, 4, 5]
    asked = []

    def note(candidate: Candidate) -> Script:
        asked.append(candidate)
        return bind(candidate)

    tuned = fakes.tune(store, fakes.backends(bind=lambda *_: note), trials=6)
    assert len(asked) == len(set(asked)) == 6
    for trial in trials_of(store, tuned.run.id):
        assert trial.script_text == bind(trial.record.candidate).text


@pytest.mark.slow
def test_a_second_run_reuses_everything_and_a_fresh_one_what_it_has_measured_itself(store: Store) -> None:
    first, second = (fakes.tune(store, trials=None, sampler="exhaustive") for _ in range(2))
    assert second.counts.reused == second.counts.proposed == 20
    originals = {trial.id for trial in trials_of(store, first.run.id)}
    assert {trial.record.reused_from for trial in trials_of(store, second.run.id)} <= originals
    fresh = fakes.tune(store, trials=None, sampler="exhaustive", fresh=True)
    assert fresh.counts.reused == 10  # the same code twice in this run
    for trial in trials_of(store, fresh.run.id):
        assert trial.record.reused_from is None or trial.record.reused_from > 40


def test_observers_hear_the_start_every_trial_and_the_final_remeasurement(store: Store) -> None:
    events: list[Event] = []
    tuned = begin(fakes.settings(), fakes.backends(), store, Interruption(), events.append)
    assert isinstance(events[0], RunStarted)
    assert (events[0].cartesian, events[0].feasible, events[0].proposed_before) == (20, 20, 0)
    done = [event for event in events if isinstance(event, TrialDone)]
    assert ([event.number for event in done], done[-1].counts.measured) == (list(range(12)), 12)
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
    assert events.count(BaselineFailed("openblas: exited with status 3")) == 1
    assert tuned.run.baseline is None
    assert tuned.best is not None
    tuned = fakes.tune(store, fakes.backends(bind=lambda *_: fakes.failing_bind), trials=3)
    assert (tuned.selected, tuned.counts.failed, tuned.run.status) == (None, 3, "done")


def test_a_time_budget_ends_the_search(store: Store) -> None:
    def slow(candidate: Candidate) -> Script:
        time.sleep(0.02)
        return bind(candidate)

    backends = fakes.backends(plan=fakes.plan({"x": tuple(range(1000))}), bind=lambda *_: slow)
    assert 1 <= fakes.tune(store, backends, trials=None, budget_s=0.3).counts.proposed < 100
    spent_before = fakes.tune(store, trials=None, budget_s=1e-9, fresh=True)
    assert (spent_before.counts.measured, spent_before.run.status) == (1, "done")


@pytest.mark.parametrize("sampler", ["random", "tpe"])
def test_an_interrupted_run_resumes_to_the_same_trials_and_measures_none_twice(
    store: Store, sampler: str
) -> None:
    uninterrupted = fakes.tune(store, trials=14, sampler=sampler, fresh=True)
    broken = interrupted(store, after=6, trials=14, sampler=sampler, fresh=True)
    before = {trial.id: trial.record for trial in trials_of(store, broken.run.id)}
    started: list[Candidate] = []
    resumed = resume(broken.run.id, noting(started.append), store, Interruption())
    trials = trials_of(store, resumed.run.id)
    assert [trial.row for trial in trials] == [trial.row for trial in trials_of(store, uninterrupted.run.id)]
    assert (resumed.run.id, resumed.run.status, resumed.counts.measured) == (broken.run.id, "done", 14)
    assert len(started) == 14 - 6
    assert {trial.id: trial.record for trial in trials}.items() >= before.items()


def test_ctrl_c_stores_what_was_measured_and_what_was_in_flight_is_run_first(store: Store) -> None:
    broken = interrupted(store, after=4, trials=14, fresh=True)
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
    closed = []

    def broken(problem: Problem, threads: int, wait: LockWait) -> Roofline:
        raise RuntimeError("a defect")

    watched = runner_with(close=lambda close: lambda: closed.append(close))
    with pytest.raises(RuntimeError, match="a defect"):
        fakes.tune(store, fakes.backends(runner=watched, roofline=broken))
    assert (len(closed), store.runs(1)[0].status) == (1, "interrupted")


@pytest.mark.parametrize(("trials", "workers"), [(1, 1), (3, 3), (12, 4)])
def test_no_more_processes_compile_than_there_are_candidates(store: Store, trials: int, workers: int) -> None:
    asked = []

    def runner(order: RunnerOrder, how: RunnerSettings) -> AbstractRunner:
        asked.append(how.workers)
        return fakes.local_runner(order, how)

    begin(fakes.settings(trials=trials, workers=4), fakes.backends(runner=runner), store, Interruption())
    assert asked == [workers]


def changed(candidate: Candidate) -> Script:
    return Script.of(bind(candidate).text + "// changed\n")


def unbound(_candidate: Candidate) -> Script:
    raise CandidateError(Stage.BIND, "no such knob")


def empty(_settings: RunSettings, _machine: Machine) -> Plan:
    raise UsageError("constraint 'x > 99' leaves nothing")


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"machine": lambda _: fakes.OTHER_MACHINE}, "was made on 'fake', this machine is 'another'"),
        # else finals would time new code in the name of the old one
        ({"bind": lambda *_: changed}, OTHER_SCRIPT),
        ({"bind": lambda *_: unbound}, OTHER_SCRIPT),
        ({"compiler": lambda _: fakes.OTHER_COMPILER}, OTHER_VERSION),
        (
            {"plan": fakes.plan({"x": (*range(20),)})},
            r"row \d+ of its search space is no longer fake\(.*new run",
        ),
    ],
    ids=["machine", "script", "no script", "compiler", "rows"],
)
def test_a_run_does_not_resume_as_another(store: Store, changes: dict[str, Any], message: str) -> None:
    interrupted(store, after=2)
    with pytest.raises(UsageError, match=f"run 1: {message}"):
        resume(1, fakes.backends(**changes), store, Interruption())
    assert store.run(1).status == "interrupted"
    with pytest.raises(UsageError, match="run: found 7, allowed 1 to 1"):
        resume(7, fakes.backends(), store, Interruption())


EDITED = dataclasses.replace(FakeTarget().compiler(), pipeline_sha256="2" * 64)


def edited_lowering(is_changed: Callable[[Candidate], bool]) -> dict[str, Any]:
    """Returns changes of a target: other sources, which make other code of some candidates."""

    def lowered(finish: Callable[[], BoundRecord]) -> Callable[[], BoundRecord]:
        def other() -> BoundRecord:
            bound = finish()
            if not is_changed(bound.record.candidate):
                return bound
            record = dataclasses.replace(bound.record, artifact_sha256="0" * 64)
            return dataclasses.replace(bound, record=record)

        return other

    return {"compiler": lambda _: EDITED, "runner": runner_with(finish=lowered)}


def test_a_run_goes_on_under_other_sources_where_they_make_the_same_code(store: Store) -> None:
    interrupted(store, after=4)
    before = len(trials_of(store))
    events: list[Event] = []
    edited = fakes.backends(compiler=lambda _target: EDITED)
    resume(1, edited, store, Interruption(), events.append)
    (again,) = (event for event in events if isinstance(event, CompilesAgain))
    assert 1 <= again.trials <= before
    assert store.run(1).compiler == EDITED
    assert fakes.tune(store, edited).counts.reused >= before


def test_a_run_does_not_go_on_where_a_lowering_changed(store: Store) -> None:
    interrupted(store, after=4)

    changes = edited_lowering(lambda _candidate: True)
    with pytest.raises(
        UsageError, match=r"run 1: tuner's passes were changed since, and fake\(.* other code"
    ):
        resume(1, fakes.backends(**changes), store, Interruption())
    assert (store.run(1).compiler, store.run(1).status) != (EDITED, "running")


def test_a_run_without_any_code_does_not_go_on_with_other_scripts(store: Store) -> None:
    def failing(candidate: Candidate) -> Script:
        deed: dict[str, Value] = {"deed": "wrong", "at": "compile"}
        return bind(Candidate.of(candidate.strategy, dict(candidate.choices) | deed))

    fakes.tune(store, fakes.backends(bind=lambda *_: failing), trials=2)
    assert {trial.record.artifact_sha256 for trial in trials_of(store)} == {""}
    with pytest.raises(UsageError, match="strategy 'fake' was changed since; start a new run"):
        resume(1, fakes.backends(), store, Interruption(), retime=True)


def test_each_script_is_compiled_again_also_one_whose_code_another_script_had(store: Store) -> None:
    fakes.tune(store, trials=20, sampler="exhaustive")
    by_code: dict[str, list[Candidate]] = {}
    for trial in trials_of(store):
        by_code.setdefault(trial.record.artifact_sha256, []).append(trial.record.candidate)
    changed_alone = next(alike[0] for alike in by_code.values() if len(alike) > 1)

    changes = edited_lowering(lambda candidate: candidate == changed_alone)
    with pytest.raises(UsageError, match="has other code"):
        resume(1, fakes.backends(**changes), store, Interruption(), retime=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"problem": Matmul(100_000, 100_000, 100_000)}, "GiB, available 1.0 GiB"),
        ({"sampler": "guess"}, "sampler: found 'guess', allowed"),
        ({"parts": fakes.backends(plan=empty)}, "x > 99"),
        ({"workers": 10**6}, "workers: found 1000000, allowed 1 to"),
        ({"threads": 10**6}, "threads: found 1000000, allowed up to 2, the processors of fake"),
    ],
)
def test_what_cannot_begin_is_refused_and_not_stored(store: Store, changes: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        fakes.tune(store, **changes)
    assert store.runs() == ()


def test_real_processes_serve_a_run(store: Store) -> None:
    backends = fakes.backends(runner=fakes.worker_runner(fake_factory()))
    tuned = fakes.tune(store, backends, trials=8, workers=2)
    assert tuned.counts.measured == 8
    assert tuned.selected is not None


@pytest.mark.slow
def test_a_fresh_run_knows_its_own_outcomes_whatever_later_runs_found(store: Store) -> None:
    """The store recalls the latest outcome, which may be of a run that came between kill and resume."""
    broken = interrupted(store, after=7, trials=20, sampler="exhaustive", fresh=True)
    uninterrupted = fakes.tune(store, trials=20, sampler="exhaustive", fresh=True)
    resumed = resume(broken.run.id, fakes.backends(), store, Interruption())
    assert resumed.counts == uninterrupted.counts
    assert differences(trials_of(store, uninterrupted.run.id), trials_of(store, resumed.run.id)) == ()


# Without a clock: what is right is verified, what cannot launch is refused, nothing is ranked.

UNTIMED = {"sampler": "exhaustive", "problem": Matmul(8, 8, 8, "f16", output="f16")}
SETTINGS = fakes.settings(20, target=TargetName("simulator", "sm_90"), **UNTIMED)


def test_without_a_clock_what_is_right_is_verified_and_what_cannot_launch_is_refused(store: Store) -> None:
    events: list[Event] = []
    tuned = begin(SETTINGS, fakes.untimed_backends(), store, Interruption(), events.append)
    counts = tuned.counts
    # x = 3 is refused with either comment; equal code is reused, twenty scripts are ten programs
    assert (counts.proposed, counts.measured, counts.verified, counts.failed) == (20, 0, 18, 2)
    assert counts.reused == 9
    assert (tuned.selected, tuned.best, tuned.run.roofline, tuned.run.baseline) == (None, None, None, None)
    assert tuned.has_worked
    assert (tuned.run.status, {type(event) for event in events}) == (
        "done",
        {RunStarted, TrialDone, SpaceExhausted},
    )
    verified = store.trials(TrialQuery(run=tuned.run.id, status="verified", sort="number"))
    for trial in verified:
        assert isinstance(trial.record.outcome, Verdict)
        assert trial.record.outcome.notes == ("1 of 1 blocks",)
        assert (trial.best_s, trial.record.verdict) == (None, None)
        assert [each.registers for each in trial.record.resources] == [32]
        assert present(store.code(trial.id)).launches[0].kernel == "k"
    spilled = [each.spilled_bytes for trial in verified for each in trial.record.resources]
    assert spilled.count(100) == 2  # what spills is verified like any other, with either comment
    (refused, _) = store.trials(TrialQuery(run=tuned.run.id, status="failed"))
    assert refused.record.outcome == Failure(Stage.RESOURCES, TOO_MUCH_MEMORY)
    assert [each.dynamic_shared_bytes for each in refused.record.resources] == [2**18]
    assert [stage for stage, _ in refused.record.stage_s] == ["bind", "transform", "lower"]


def test_another_run_reuses_the_verdicts_and_there_is_no_best(store: Store) -> None:
    begin(SETTINGS, fakes.untimed_backends(), store, Interruption())
    again = begin(SETTINGS, fakes.untimed_backends(), store, Interruption())
    assert (again.counts.verified, again.counts.reused) == (18, 20)
    (reused,) = store.trials(TrialQuery(run=again.run.id, status="verified", limit=1))
    assert [each.registers for each in reused.record.resources] == [32]


# On other machines: a run that follows another one's candidates; a processor that lacks an extension.

FAKE = TargetName("fake")


def elsewhere(*xs: int) -> Backends:
    """Returns the parts of a run on another machine, where only some values of x are feasible."""
    plan = fakes.plan({"x": xs or tuple(range(10)), "comment": ("a", "b")})
    return fakes.backends(machine=lambda _target: fakes.OTHER_MACHINE, plan=plan)


@pytest.fixture
def source_run(store: Store) -> Run:
    return fakes.tune(store, trials=8).run


def test_it_proposes_what_the_source_run_has_and_is_resumed_if_begun(store: Store, source_run: Run) -> None:
    settings, begun = transfer_settings(source_run, FAKE, elsewhere(), store)
    assert begun is None
    run = begin(present(settings), elsewhere(), store, Interruption()).run
    assert (run.machine, run.status) == (fakes.OTHER_MACHINE, "done")
    assert candidates_of(store, run.id) == candidates_of(store, source_run.id)
    assert len(candidates_of(store, source_run.id)) == 8
    assert transfer_settings(source_run, FAKE, elsewhere(), store) == (None, run.id)
    assert transfer_settings(fakes.tune(store, trials=3, seed=1).run, FAKE, elsewhere(), store)[1] is None


def test_candidates_not_feasible_there_are_left_out_unless_all_are(store: Store, source_run: Run) -> None:
    with pytest.raises(UsageError, match="no candidate that is feasible on 'another', allowed 1 or more"):
        transfer_settings(source_run, FAKE, elsewhere(77), store)
    known = [dict(candidate.choices)["x"] for candidate in candidates_of(store, source_run.id)]
    kept = tuple(sorted({int(x) for x in known[:2]}))
    settings, _ = transfer_settings(source_run, FAKE, elsewhere(*kept), store)
    tuned = begin(present(settings), elsewhere(*kept), store, Interruption())
    expected = [each for each in candidates_of(store, source_run.id) if dict(each.choices)["x"] in kept]
    assert candidates_of(store, tuned.run.id) == expected


def machine(*extensions: str) -> Machine:
    name = processor_class("Xeon", "family 6 model 143", ("avx512", *extensions), (48 << 10, 2 << 20, 0))
    return dataclasses.replace(fakes.MACHINE, name=name, has_bf16="bf16" in extensions)


WITH_BF16, WITHOUT = machine("bf16", "vnni"), machine("vnni")


def on(host: Machine) -> Backends:
    backends = fakes.backends()
    kind = fakes.changed(backends.targets["fake"], machine=lambda _target: host)
    return fakes.changed(backends, targets={"fake": kind}, machine=lambda: host)


@pytest.mark.slow
def test_nothing_of_a_processor_with_bf16_is_used_on_one_without(store: Store) -> None:
    tuned, other = fakes.tune(store, on(WITH_BF16), trials=4), on(WITHOUT)
    assert audited(other, store) == []
    only_with = r"nothing measured on .*, avx512 vnni, .* only on .*, avx512 bf16 vnni"
    with pytest.raises(UsageError, match=only_with):
        best_known(store, other, fakes.settings().problem, "fake")
    with pytest.raises(UsageError, match="nothing measured on"):
        best_here(store, other, fakes.settings().problem, "fake")  # as load_best asks
    with pytest.raises(UsageError, match=r"was timed on 'Xeon .* bf16 vnni, .*, this machine is 'Xeon"):
        recorded_entry(other, store, present(tuned.best))
    trials = store.trials(TrialQuery(run=fakes.tune(store, other, trials=4).run.id))
    assert {each.record.reused_from for each in trials} <= {None, *(each.id for each in trials)}
    with pytest.raises(UsageError, match=r"run 1: was made on 'Xeon .* bf16"):
        resume(tuned.run.id, other, store, Interruption(), retime=True)
