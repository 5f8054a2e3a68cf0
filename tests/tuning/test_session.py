import time

import numpy as np
import pytest

from tests.fakes import FakeTarget, bind, candidate, time_of
from tests.tuning import fakes
from tuner.core.interfaces import AbstractBaselineSource, AbstractRunner, Artifact, LoadedLibrary, Script
from tuner.core.problem import Problem
from tuner.core.runs import Baseline
from tuner.db.store import Store
from tuner.runtime.workers.runner import LocalRunner, RunnerOrder
from tuner.targets.interface import RunnerSettings
from tuner.tuning.events import BaselineMeasured, Event, Interruption
from tuner.tuning.run import begin, resume

COMPILE_S = 0.02


class SlowCompiler(FakeTarget):
    """Lets the one that measures wait."""

    def compile(self, problem: Problem, script: Script) -> Artifact:
        time.sleep(COMPILE_S)
        return FakeTarget.compile(self, problem, script)


def slow_runner(order: RunnerOrder, how: RunnerSettings) -> AbstractRunner:
    return LocalRunner(order, SlowCompiler(), FakeTarget(), how.seed)


class LibraryTarget(FakeTarget, AbstractBaselineSource):
    """Its baseline is as fast as x = 5, in turns with the finalists."""

    def load_baselines(self, problem: Problem, rng: np.random.Generator) -> tuple[LoadedLibrary, ...]:
        work = self.load(problem, self.compile(problem, bind(candidate(5))))
        return (LoadedLibrary("fake", "FakeBLAS 1.0", work),)


def test_the_baseline_library_that_took_turns_with_the_top_trials_is_kept(store: Store) -> None:
    calls = []

    def alone(problem: Problem, threads: int, seed: int) -> Baseline:
        calls.append(problem)
        return fakes.baseline(problem, threads, seed)

    def runner(order: RunnerOrder, how: RunnerSettings) -> AbstractRunner:
        return LocalRunner(order, FakeTarget(), LibraryTarget(), how.seed)

    backends = fakes.backends(runner=runner, baseline=alone)
    events: list[Event] = []
    tuned = begin(fakes.settings(), backends, store, Interruption(), observe=events.append)
    assert calls == [fakes.settings().problem]  # before the search; not again behind the finals
    baseline = store.run(tuned.run.id).baseline
    assert baseline is not None
    assert (baseline.name, baseline.measurement.median_s) == ("FakeBLAS 1.0", time_of(5))
    assert baseline in [each.baseline for each in events if isinstance(each, BaselineMeasured)]


@pytest.mark.slow
def test_waiting_for_compiles_is_reported_as_idle(store: Store) -> None:
    trials = 6
    tuned = begin(fakes.settings(trials), fakes.backends(runner=slow_runner), store, Interruption())
    run = store.run(tuned.run.id)
    assert run.idle_s is not None
    assert run.search_s is not None
    assert trials * COMPILE_S <= run.idle_s <= run.search_s <= tuned.seconds


@pytest.mark.slow
def test_what_an_earlier_session_measured_is_not_counted_again(store: Store) -> None:
    tuned = begin(fakes.settings(6), fakes.backends(runner=slow_runner), store, Interruption())
    before = store.run(tuned.run.id)
    again = fakes.backends(runner=slow_runner)
    resume(tuned.run.id, again, store, Interruption(), retime=True)
    after = store.run(tuned.run.id)
    assert None not in (before.search_s, before.idle_s, after.search_s, after.idle_s)
    searched_s = (after.search_s or 0.0) - (before.search_s or 0.0)
    assert (after.idle_s or 0.0) - (before.idle_s or 0.0) == pytest.approx(searched_s)
    assert searched_s > 0
