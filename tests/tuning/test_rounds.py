"""Rounds of timing: none replaces another, and the quietest answers. The clock is scripted."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.busy_loops import spinning
from tests.fakes import FakeTarget, Loaded
from tests.forwarding import ForwardingTarget
from tests.tuning import fakes
from tuner import api
from tuner.core.errors import CandidateError, Stage
from tuner.core.interfaces import AbstractRunner, Effort
from tuner.core.machine import HostConditions
from tuner.core.problem import Matmul, Problem
from tuner.core.records import Measurement
from tuner.core.round_quality import OTHERS_LIMIT
from tuner.core.runs import TaskQuery, TrialQuery
from tuner.db.store import Store
from tuner.results.best_trials import best_result
from tuner.results.past_runs import past_trials
from tuner.runtime import timing
from tuner.runtime.workers.runner import LocalRunner, RunnerOrder
from tuner.targets.backends import Backends
from tuner.targets.interface import RunnerSettings
from tuner.tuning.events import Event, Interruption, RemeasurementStarted
from tuner.tuning.run import resume
from tuner.tuning.tuned_run import TunedRun

Slowdown = Callable[[int], float]  # of the n-th sample of a round


def quiet(sample: int) -> float:
    return 1.0


def loaded_at_times(sample: int) -> float:
    """A busy loop that starts and stops: each of its stretches takes half of the processor."""
    return 2.0 if sample // 40 % 2 else 1.0


def loaded(sample: int) -> float:
    return 3.0


class ScriptedTarget(ForwardingTarget):
    """Times finalists in turns by a clock that a load slows down."""

    def __init__(self, slowdown: Slowdown, anchor_drift: float) -> None:
        super().__init__(FakeTarget(), FakeTarget())
        self._slowdown = slowdown
        self._host = HostConditions(0.0, anchor_drift, 0.0, 0.0, 0.0, 1e-3, anchor_drift)
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


def parts(slowdown: Slowdown = quiet, anchor_drift: float = 0.0) -> Backends:
    def runner(order: RunnerOrder, how: RunnerSettings) -> AbstractRunner:
        target = ScriptedTarget(slowdown, anchor_drift)
        return LocalRunner(order, target, target, how.seed)

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
        assert resumed.run == done.run
        assert events == []


@pytest.mark.parametrize("load", [(loaded_at_times, 1.0), (loaded, 0.5)])
def test_a_round_under_load_replaces_no_quiet_one(store: Store, load: tuple[Slowdown, float]) -> None:
    done = tuned(store, parts())
    disturbed = again(store, parts(*load))
    assert (disturbed.selected, disturbed.run.unreliable) == (done.selected, "")
    assert disturbed.run.baseline == done.run.baseline
    assert [bool(each.quality.unreliable) for each in disturbed.rounds] == [False, True]
    assert [each.is_answering for each in disturbed.rounds] == [True, False]


def test_a_quiet_round_replaces_an_answer_under_load_wherever_it_is_asked_for(store: Store) -> None:
    disturbed = tuned(store, parts(loaded_at_times, 1.0))
    assert "load, other programs kept 1.0 processors busy" in disturbed.run.unreliable
    mended = again(store, parts())
    assert mended.run.unreliable == ""
    assert mended.selected is not None
    assert disturbed.selected is not None
    assert mended.selected.measurement.samples_s != disturbed.selected.measurement.samples_s
    assert [each.is_answering for each in mended.rounds] == [False, True]
    fakes.tune(store, parts(loaded_at_times, 1.0), trials=20, seed=1)
    problem = fakes.settings().problem
    (given,) = past_trials(store, TrialQuery(TaskQuery.of(problem), best=True))
    assert given == mended.selected.best == best_result(store, problem, fakes.MACHINE.name).best


CUT = "timed out after 88 s"


class CutTarget(FakeTarget):
    """Its interleaved timings fail, as where a limit ends them."""

    def measure_together(self, *_: Any) -> tuple[Measurement, ...]:
        raise CandidateError(Stage.RUN, CUT)


def cut_parts() -> Backends:
    return fakes.backends(runner=lambda order, how: LocalRunner(order, FakeTarget(), CutTarget(), how.seed))


def test_a_lost_round_is_stored_is_the_badge_of_its_run_and_is_repeated(store: Store) -> None:
    lost = tuned(store, cut_parts())
    assert lost.run.unreliable == f"the final re-measurement was lost: {CUT}"
    assert lost.run.noise is None
    assert lost.run.baseline is not None
    assert not lost.run.baseline.is_interleaved
    (stored,) = lost.rounds
    assert (stored.quality.is_lost, stored.is_answering) == (True, False)
    assert all(trial.unreliable == lost.run.unreliable for trial in store.trials(TrialQuery(run=1)))
    store.resume_run(1)
    resumed = resume(1, parts(), store, Interruption())
    assert resumed.run.unreliable == ""
    assert resumed.selected is not None
    assert resumed.selected.best.final is not None
    assert [each.is_answering for each in resumed.rounds] == [False, True]


def test_a_lost_round_takes_nothing_from_an_earlier_one(store: Store) -> None:
    done = tuned(store, parts())
    lost = again(store, cut_parts())
    assert (lost.selected, lost.run.unreliable, lost.run.noise) == (done.selected, "", done.run.noise)
    assert [each.quality.is_lost for each in lost.rounds] == [False, True]
    assert [each.is_answering for each in lost.rounds] == [True, False]


LOOPS_PER_PROCESSOR = 2


@pytest.mark.mlir
@pytest.mark.slow
def test_timing_again_next_to_busy_loops_replaces_no_quieter_answer(tmp_path: Path) -> None:
    """Whether the first round is a quiet one is this machine's affair; the second never is."""
    database = tmp_path / "drill.db"
    first = api.tune(Matmul(64, 64, 64), target="cpu", trials=3, db=database)
    assert first.selected is not None
    with spinning(LOOPS_PER_PROCESSOR * len(os.sched_getaffinity(0))):
        again = api.resume(first.run.id, database, retime=True)
    calm, disturbed = (each.quality for each in again.rounds)
    assert disturbed.unreliable  # where a virtual machine's processors are taken too, that is the cause named
    assert disturbed.host is not None
    assert disturbed.host.others_cores > OTHERS_LIMIT
    keeps_first = calm.rank <= disturbed.rank
    assert keeps_first or calm.unreliable
    assert [each.is_answering for each in again.rounds] == [keeps_first, not keeps_first]
    assert (again.selected == first.selected) == keeps_first
    assert again.run.unreliable == (calm if keeps_first else disturbed).unreliable
