import time
from collections import deque
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import BEST_X, FakeTarget, bind, candidate, order, time_of
from tests.tuning import fakes
from tuner.core.candidate import Candidate
from tuner.core.errors import Failure
from tuner.core.interfaces import (
    AbstractBaselineSource,
    AbstractRunner,
    AbstractSampler,
    Artifact,
    BoundRecord,
    Effort,
    FinalTimes,
    LoadedLibrary,
    Script,
)
from tuner.core.problem import Problem
from tuner.core.records import Measurement
from tuner.core.runs import Baseline
from tuner.db.store import Store
from tuner.runtime.workers.runner import LocalRunner, RunnerOrder
from tuner.targets.interface import RunnerSettings
from tuner.tuning.events import BaselineMeasured, Event, Interruption
from tuner.tuning.run import begin, resume
from tuner.tuning.session import EARLY_STOPPED, Trial, search

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


ROWS = 20


WRONG_ROWS = (2, 5, 6)


class LineSampler(AbstractSampler):
    """Proposes 0, 1, 2, ... and notes what it knew at each proposal."""

    def __init__(self, rows: int = ROWS) -> None:
        self._rows = rows
        self.told: list[tuple[int, float | None]] = []
        self.knew: list[int] = []  # outcomes known at each ask
        self.numbers: list[int] = []

    def ask(self, number: int) -> int | None:
        if len(self.knew) == self._rows:
            return None
        self.knew.append(len(self.told))
        self.numbers.append(number)
        return len(self.knew) - 1

    def tell(self, row: int, value: float | None) -> None:
        self.told.append((row, value))

    def replay(self, number: int, row: int) -> None:
        raise AssertionError("the loop replays nothing")


class NotingRunner(AbstractRunner):
    """Works as the local one and notes the efforts and how many candidates were in flight."""

    def __init__(self) -> None:
        self._local = LocalRunner(order(), FakeTarget(), FakeTarget(), 0)
        self._flying: deque[Candidate] = deque()
        self.efforts: list[Effort] = []
        self.started: list[Candidate] = []
        self.most_in_flight = 0

    def start(self, number: int, candidate: Candidate, effort: Effort) -> None:
        self._local.start(number, candidate, effort)
        self.efforts.append(effort)
        self._flying.append(candidate)
        self.started.append(candidate)
        self.most_in_flight = max(self.most_in_flight, len(self._flying))

    def finish(self) -> BoundRecord:
        self._flying.popleft()
        return self._local.finish()

    def remeasure(self, top_trials: tuple[BoundRecord, ...], effort: Effort) -> FinalTimes:
        return self._local.remeasure(top_trials, effort)

    def close(self) -> None:
        self._local.close()


def candidate_of(row: int) -> Candidate:
    return candidate(row, "wrong", "verify") if row in WRONG_ROWS else candidate(row)


def run(
    sampler: LineSampler,
    runner: AbstractRunner,
    is_over: Callable[[int], bool] = lambda proposed: False,
    pending_limit: int = 1,
    first: int = 0,
    incumbent_s: float | None = None,
) -> tuple[list[Trial], list[tuple[int, int]]]:
    proposals: list[tuple[int, int]] = []
    trials = search(
        sampler,
        candidate_of,
        runner,
        is_over,
        lambda number, row, chosen: proposals.append((number, row)),
        pending_limit,
        first,
        incumbent_s=incumbent_s,
    )
    return list(trials), proposals


@given(pending_limit=st.integers(1, 30), rows=st.integers(0, ROWS), first=st.integers(0, 3))
def test_trials_come_in_the_order_of_proposals_until_every_row_is_tried(
    pending_limit: int, rows: int, first: int
) -> None:
    trials, proposals = run(LineSampler(rows), NotingRunner(), pending_limit=pending_limit, first=first)
    expected = [(first + row, row) for row in range(rows)]
    assert [(trial.number, trial.row) for trial in trials] == expected
    assert proposals == expected
    assert [trial.bound.record.candidate for trial in trials] == [candidate_of(row) for row in range(rows)]


@given(pending_limit=st.integers(1, 30))
def test_a_proposal_knows_exactly_the_outcomes_that_the_limit_lets_it_know(pending_limit: int) -> None:
    sampler = LineSampler()
    run(sampler, NotingRunner(), pending_limit=pending_limit)
    assert sampler.knew == [max(0, number - pending_limit + 1) for number in range(ROWS)]
    assert [row for row, _ in sampler.told] == list(range(ROWS))


@given(pending_limit=st.integers(1, 30))
def test_no_more_are_in_flight_than_the_limit(pending_limit: int) -> None:
    runner = NotingRunner()
    run(LineSampler(), runner, pending_limit=pending_limit)
    assert runner.most_in_flight == min(pending_limit, ROWS)


@pytest.mark.parametrize("pending_limit", [1, 3])
def test_failure_of_one_candidate_does_not_end_the_search(pending_limit: int) -> None:
    sampler = LineSampler()
    trials, _ = run(sampler, NotingRunner(), pending_limit=pending_limit)
    failed = [trial.row for trial in trials if isinstance(trial.bound.record.outcome, Failure)]
    assert failed == list(WRONG_ROWS)
    assert dict(sampler.told) == {row: None if row in WRONG_ROWS else time_of(row) for row in range(ROWS)}


def test_early_stopped_is_measured_against_the_fastest_so_far() -> None:
    runner = NotingRunner()
    trials, _ = run(LineSampler(), runner)
    fastest: float | None = None
    for trial, effort in zip(trials, runner.efforts, strict=True):
        assert effort.stop_above_s == (None if fastest is None else EARLY_STOPPED * fastest)
        seconds = trial.bound.record.median_s
        fastest = min(filter(None, (fastest, seconds)), default=None)
    assert fastest == time_of(BEST_X)
    assert not any(
        trial.bound.record.outcome.is_complete
        for trial in trials[BEST_X + 2 :]
        if isinstance(trial.bound.record.outcome, Measurement)
    )


def test_the_incumbent_of_an_earlier_session_counts_from_the_start() -> None:
    runner = NotingRunner()
    run(LineSampler(3), runner, incumbent_s=1e-4)
    assert [effort.stop_above_s for effort in runner.efforts] == [EARLY_STOPPED * 1e-4] * 3


@given(budget=st.integers(0, 25), pending_limit=st.integers(1, 5), first=st.integers(0, 3))
def test_a_spent_budget_ends_proposals_and_what_is_in_flight_is_finished(
    budget: int, pending_limit: int, first: int
) -> None:
    trials, proposals = run(
        LineSampler(), NotingRunner(), lambda proposed: proposed >= budget, pending_limit, first
    )
    assert len(trials) == len(proposals) == min(ROWS, max(0, budget - first))


def test_numbers_go_on_from_an_earlier_session() -> None:
    sampler = LineSampler(3)
    run(sampler, NotingRunner(), first=40)
    assert sampler.numbers == [40, 41, 42]


def test_a_proposal_is_reported_before_its_candidate_is_started() -> None:
    runner = NotingRunner()
    already_started: list[bool] = []
    trials = search(
        LineSampler(4),
        candidate_of,
        runner,
        lambda proposed: False,
        lambda number, row, chosen: already_started.append(chosen in runner.started),
        pending_limit=2,
    )
    assert [trial.bound.record.candidate for trial in trials] == runner.started
    assert already_started == [False] * 4
