import dataclasses
import math
import os
import subprocess
import sys
import time
from collections import deque
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import BASELINE_X, BEST_X, FakeTarget, candidate, order, time_of
from tests.tuning import fakes
from tuner.core.candidate import Candidate
from tuner.core.errors import Failure, UsageError
from tuner.core.interfaces import (
    AbstractRunner,
    AbstractSampler,
    Artifact,
    BoundRecord,
    Effort,
    FinalTimes,
    Script,
)
from tuner.core.machine import PresentLoad, Processors
from tuner.core.problem import Problem
from tuner.core.records import Measurement
from tuner.core.runs import Baseline
from tuner.db.store import Store
from tuner.runtime.timing_lock import LockWait
from tuner.runtime.workers.runner import RunnerOrder, TrialRunner
from tuner.targets.backends import Backends
from tuner.targets.target import RunnerSettings
from tuner.tuning.budget import EARLY_STOPPED
from tuner.tuning.events import BaselineMeasured, Event, Interruption, MachineBusy, RunStarted
from tuner.tuning.run import begin, resume
from tuner.tuning.tuning_session import Proposed, search

COMPILE_S = 0.02


class SlowCompiler(FakeTarget):
    def compile(self, problem: Problem, script: Script) -> Artifact:
        time.sleep(COMPILE_S)
        return FakeTarget.compile(self, problem, script)


def test_the_baseline_library_that_is_timed_interleaved_with_the_top_trials_is_kept(store: Store) -> None:
    calls = []

    def alone(problem: Problem, threads: int, seed: int, wait: LockWait) -> Baseline:
        calls.append(problem)
        return fakes.baseline(problem, threads, seed, wait)

    events: list[Event] = []
    backends = fakes.backends(baseline=alone)
    tuned = begin(fakes.settings(), backends, store, Interruption(), observe=events.append)
    assert calls == [fakes.settings().problem]  # before the search; not again after the final re-measurement
    baseline = fakes.present(store.run(tuned.run.id).baseline)
    assert (baseline.name, baseline.measurement.median_s) == ("FakeBLAS 1.0", time_of(BASELINE_X))
    assert baseline in [each.baseline for each in events if isinstance(each, BaselineMeasured)]


def test_a_short_budget_has_the_final_time_of_the_baseline_and_no_measured_roofline(store: Store) -> None:
    def unwanted(problem: Problem, *_: object) -> Any:
        raise AssertionError(f"asked for a time alone: {problem.key}")

    backends = fakes.backends(baseline=unwanted, roofline=unwanted)
    tuned = fakes.tune(store, backends, trials=3, budget_s=19.0)
    assert fakes.present(tuned.run.baseline).name == "FakeBLAS 1.0"
    assert tuned.run.roofline is None
    with pytest.raises(AssertionError, match="asked for a time alone"):
        fakes.tune(store, backends, trials=3, budget_s=20.0)


@pytest.mark.slow
def test_waiting_for_compiles_is_reported_as_idle_and_counts_once_for_each_session(store: Store) -> None:
    slow = SlowCompiler()
    backends = fakes.backends(
        runner=lambda order, how: TrialRunner.local(order, slow, FakeTarget(), how.seed)
    )
    tuned = fakes.tune(store, backends, trials=6)

    def idle_and_search_s() -> tuple[float, float]:
        run = store.run(tuned.run.id)
        return fakes.present(run.idle_s), fakes.present(run.search_s)

    idle_s, search_s = idle_and_search_s()
    assert 6 * COMPILE_S <= idle_s <= search_s <= tuned.seconds
    resume(tuned.run.id, backends, store, Interruption(), retime=True)
    idle_s_after, search_s_after = idle_and_search_s()
    assert 0 < search_s_after - search_s == pytest.approx(idle_s_after - idle_s)


ROWS = 20
WRONG_ROWS = (2, 5, 6)


class LineSampler(AbstractSampler):
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
    def __init__(self) -> None:
        self._local = TrialRunner.local(order(), FakeTarget(), FakeTarget(), 0)
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
    sampler: LineSampler, runner: AbstractRunner, limit: float = math.inf, pending_limit: int = 1, **more: Any
) -> tuple[list[tuple[Proposed, BoundRecord]], list[tuple[int, int, Candidate]]]:
    proposals: list[tuple[int, int, Candidate]] = []
    propose = more.pop("propose", lambda *proposal: proposals.append(proposal))
    of = (sampler, candidate_of, runner, lambda proposed: proposed >= limit, propose, pending_limit)
    return list(search(*of, **more)), proposals


@given(pending_limit=st.integers(1, 30), rows=st.integers(0, ROWS))
def test_trials_come_in_the_order_of_proposals_and_know(pending_limit: int, rows: int) -> None:
    sampler, runner = LineSampler(rows), NotingRunner()
    trials, proposals = run(sampler, runner, pending_limit=pending_limit)
    expected = [(row, row, candidate_of(row)) for row in range(rows)]
    assert [(*proposed, bound.record.candidate) for proposed, bound in trials] == proposals == expected
    assert sampler.numbers == [number for number, *_ in expected]
    assert sampler.knew == [max(0, row - pending_limit + 1) for row in range(rows)]
    assert [row for row, _ in sampler.told] == list(range(rows))
    assert runner.most_in_flight == min(pending_limit, rows)


@pytest.mark.parametrize("pending_limit", [1, 3])
def test_failures_end_no_search_and_proposals_are_reported_before_they_start(pending_limit: int) -> None:
    sampler, runner = LineSampler(), NotingRunner()
    already_started: list[bool] = []

    def propose(number: int, row: int, chosen: Candidate) -> None:
        already_started.append(chosen in runner.started)

    trials, _ = run(sampler, runner, pending_limit=pending_limit, propose=propose)
    assert [bound.record.candidate for _, bound in trials] == runner.started
    assert already_started == [False] * ROWS
    failed = [proposed.row for proposed, bound in trials if isinstance(bound.record.outcome, Failure)]
    assert failed == list(WRONG_ROWS)
    assert dict(sampler.told) == {row: None if row in WRONG_ROWS else time_of(row) for row in range(ROWS)}


def test_early_stopped_is_measured_against_the_fastest_so_far() -> None:
    runner = NotingRunner()
    trials, _ = run(LineSampler(), runner)
    fastest: float | None = None
    for (_, bound), effort in zip(trials, runner.efforts, strict=True):
        assert effort.stop_above_s == (None if fastest is None else EARLY_STOPPED * fastest)
        fastest = min(filter(None, (fastest, bound.record.median_s)), default=None)
    assert fastest == time_of(BEST_X)
    assert not any(
        bound.record.outcome.is_complete
        for _, bound in trials[BEST_X + 2 :]
        if isinstance(bound.record.outcome, Measurement)
    )


@given(budget=st.integers(0, 25), pending_limit=st.integers(1, 5))
def test_a_spent_budget_ends_proposals_not_trials(budget: int, pending_limit: int) -> None:
    trials, proposals = run(LineSampler(), NotingRunner(), budget, pending_limit)
    assert len(trials) == len(proposals) == min(ROWS, budget)


@given(pending_limit=st.integers(1, 5), answers=st.lists(st.booleans(), max_size=60))
def test_a_budget_that_seemed_spent_gives_no_proposal_more_outcomes(
    pending_limit: int, answers: list[bool]
) -> None:
    """The estimate of what is in flight falls while trials end: the search may go on."""
    sampler = LineSampler()
    given_answers = iter(answers)
    of = (sampler, candidate_of, NotingRunner(), lambda _: next(given_answers, False), lambda *_: None)
    list(search(*of, pending_limit))
    assert sampler.knew == [max(0, row - pending_limit + 1) for row in range(len(sampler.knew))]


# What is looked at before a run begins: load, and the processors that this process may use.

PINNED = "import os, tuner.cli; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); tuner.cli.main()"


def busy(load: PresentLoad) -> Backends:
    return fakes.changed(fakes.backends(), present_load=lambda: load)


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("load", "is_reported"), [((0.1, 0.0), False), ((1.8, 0.0), True), ((0.0, 0.2), True)]
)
def test_load_is_reported_before_timing(store: Store, load: tuple[float, float], is_reported: bool) -> None:
    events: list[Event] = []
    begin(fakes.settings(), busy(PresentLoad(*load)), store, Interruption(), events.append)
    assert isinstance(events[0], RunStarted)
    assert isinstance(events[1], MachineBusy) is is_reported
    assert sum(isinstance(event, MachineBusy) for event in events) == is_reported


@pytest.mark.parametrize(("cores", "first"), [(1, "baseline"), (3, "baseline"), (4, "runner")])
def test_children_start_next_to_the_baseline_only_where_each_has_a_core(
    store: Store, cores: int, first: str
) -> None:
    """On one processor its first time was taken while a compile worker and the measuring one started."""
    began: list[str] = []

    def runner(of: RunnerOrder, how: RunnerSettings) -> AbstractRunner:
        began.append("runner")
        return fakes.local_runner(of, how)

    def baseline(problem: Problem, threads: int, seed: int, wait: LockWait) -> Baseline:
        began.append("baseline")
        return fakes.baseline(problem, threads, seed, wait)

    machine = dataclasses.replace(fakes.MACHINE, physical_cores=cores, logical_cores=cores)
    parts = fakes.backends(runner=runner, baseline=baseline, machine=lambda _target: machine)
    fakes.tune(store, parts, workers=2)
    assert began[:2] == [first, {"baseline": "runner", "runner": "baseline"}[first]]
    assert began.count("runner") == 1


@pytest.mark.slow
def test_load_is_reported_before_the_best_are_timed_again(store: Store) -> None:
    run = fakes.tune(store).run.id
    events: list[Event] = []
    resume(run, busy(PresentLoad(1.8, 0.0)), store, Interruption(), events.append, retime=True)
    assert events[1] == MachineBusy(run, PresentLoad(1.8, 0.0), 2)


def test_a_run_whose_threads_may_not_run_at_once_is_neither_begun_nor_resumed(store: Store) -> None:
    pinned = fakes.changed(fakes.backends(), processors=lambda: Processors(present=8, allowed=1))
    message = "threads: found 2, allowed up to 1: the affinity mask of this process"
    with pytest.raises(UsageError, match=message):
        fakes.tune(store, pinned, threads=2)
    run = fakes.tune(store, threads=2).run.id
    with pytest.raises(UsageError, match=message):
        resume(run, pinned, store, Interruption(), retime=True)


@pytest.mark.slow
@pytest.mark.mlir
def test_the_command_names_the_affinity_mask_that_limits_its_threads(tmp_path: Path) -> None:
    options = ("tune", "matmul", "16x16x16", "--target", "cpu", "--threads", "2", "--db")
    command = [sys.executable, "-c", PINNED, *options, str(tmp_path / "r.db")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "threads: found 2, allowed up to 1" in done.stderr
    if (os.cpu_count() or 1) > 1:
        assert "(taskset, cpuset) allows 1 of" in done.stderr


def test_a_request_cuts_waiting_off_and_then_waiting_does_not_begin() -> None:
    interruption = Interruption()
    with pytest.raises(KeyboardInterrupt), interruption.waiting():
        interruption.ask()
    assert interruption.is_asked
    with pytest.raises(KeyboardInterrupt), interruption.waiting():
        raise AssertionError("waiting began")


@pytest.mark.parametrize("waits", [0, 1])
def test_a_request_before_or_after_waiting_raises_nothing(waits: int) -> None:
    """Such as while a trial is stored, which must not be cut off."""
    interruption = Interruption()
    for _ in range(waits):
        with interruption.waiting():
            pass
    interruption.ask()
    assert interruption.is_asked
