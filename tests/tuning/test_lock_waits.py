"""A run next to another tuner: it reports whom it waits for, and its budget ends the wait."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tuning import fakes
from tuner.core.interfaces import AbstractRunner
from tuner.core.problem import Problem
from tuner.core.runs import Baseline
from tuner.db.store import Store
from tuner.runtime.cpu.host import cores_of
from tuner.runtime.timing_lock import LockWait, TimingLock
from tuner.runtime.workers.limits import Limits
from tuner.runtime.workers.protocol import Factory
from tuner.runtime.workers.runner import RunnerOrder, RunnerProcesses, TrialRunner
from tuner.runtime.workers.services import compile_spec, evaluation_spec
from tuner.targets.backends import Backends
from tuner.targets.target import RunnerSettings
from tuner.tuning import run_steps
from tuner.tuning.events import Event, Interruption, LockWaitEnded, WaitedForLock, WaitsForLock
from tuner.tuning.run import begin
from tuner.tuning.run_steps import RunSteps, Session

HOLDER = "process 7, matmul 8x8x8"
BUDGET_S = 3.0  # of which a part is kept for the final re-measurement


def locking(folder: Path) -> Backends:
    """Returns backends whose runner, in real processes, and baseline take the timing lock in ``folder``."""

    def runner(of: RunnerOrder, how: RunnerSettings) -> AbstractRunner:
        target = Factory("tests.fakes:FakeTarget")
        exclusive = TimingLock("cpu", "this run", how.wait, folder).held
        spec, limits = evaluation_spec(target), Limits()
        processes = RunnerProcesses(compile_spec(target), spec, how.workers, limits, exclusive)
        return TrialRunner.in_children(of, processes, how.seed)

    def baseline(problem: Problem, threads: int, seed: int, wait: LockWait) -> Baseline:
        with TimingLock("cpu", "this run", wait, folder).held():
            return fakes.baseline(problem, threads, seed)

    return fakes.backends(runner=runner, baseline=baseline)


@pytest.fixture
def held(tmp_path: Path) -> Iterator[threading.Event]:
    """Holds the lock until the event is set, in another thread."""
    release, holds = threading.Event(), threading.Event()

    def hold() -> None:
        with TimingLock("cpu", HOLDER, folder=tmp_path).held():
            holds.set()
            release.wait()

    holding = threading.Thread(target=hold)
    holding.start()
    holds.wait()
    yield release
    release.set()
    holding.join()


@pytest.mark.slow
def test_a_budget_ends_the_wait_for_one_that_never_lets_go(
    store: Store, tmp_path: Path, held: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any process of the user could hold the lock, and every run waited for ever."""
    monkeypatch.setattr(run_steps, "WAIT_SHOWN_S", 0.0)
    monkeypatch.setattr(run_steps, "WAIT_SHOWN", 0.0)
    events: list[Event] = []
    settings = fakes.settings(trials=None, budget_s=BUDGET_S)
    tuned = begin(settings, locking(tmp_path), store, Interruption(), events.append)
    assert not held.is_set()
    assert tuned.run.status == "done"
    assert tuned.selected is not None
    assert [each for each in events if isinstance(each, WaitsForLock)] == [WaitsForLock(HOLDER, True)]
    assert [each for each in events if isinstance(each, LockWaitEnded)] == [LockWaitEnded(HOLDER)]
    (waited,) = [each for each in events if isinstance(each, WaitedForLock)]
    assert 0.0 < waited.waited_s <= waited.elapsed_s


def test_without_a_budget_it_waits_until_the_other_one_ends(
    store: Store, tmp_path: Path, held: threading.Event
) -> None:
    events: list[Event] = []

    def observe(event: Event) -> None:
        events.append(event)
        if isinstance(event, WaitsForLock):
            held.set()

    tuned = begin(fakes.settings(trials=2), locking(tmp_path), store, Interruption(), observe)
    assert held.is_set()
    assert tuned.counts.measured == 2
    assert [each for each in events if isinstance(each, WaitsForLock)] == [WaitsForLock(HOLDER, False)]
    assert not [each for each in events if isinstance(each, LockWaitEnded)]


@pytest.mark.parametrize(("waited_s", "is_reported"), [(0.5, False), (2.9, False), (3.1, True)])
def test_a_wait_is_reported_at_the_end_where_it_took_a_large_part(
    store: Store, waited_s: float, is_reported: bool
) -> None:
    run = fakes.tune(store).run
    events: list[Event] = []
    steps = RunSteps(Session(run, (), fakes.FAKE, store, observe=events.append))
    steps.lock_wait.waited_s = waited_s
    steps.report_waited(3.0 / run_steps.WAIT_SHOWN)
    assert [isinstance(each, WaitedForLock) for each in events] == [True] * is_reported


HOLD = """
import os, sys
from tuner.runtime.timing_lock import TimingLock
os.sched_setaffinity(0, {int(sys.argv[1])})
with TimingLock("cpu", f"process {os.getpid()}, matmul").held():
    print("held", flush=True)
    sys.stdin.readline()
"""
PINNED = "import os, sys, tuner.cli; os.sched_setaffinity(0, {int(sys.argv.pop(1))}); tuner.cli.main()"


@pytest.mark.slow
@pytest.mark.mlir
@pytest.mark.skipif(len(cores_of(os.sched_getaffinity(0))) < 2, reason="needs two cores")
def test_commands_on_cores_of_their_own_do_not_wait_and_on_one_core_one_says_so(tmp_path: Path) -> None:
    first, second, *_ = cores_of(os.sched_getaffinity(0))
    program = [sys.executable, "-c", HOLD, str(first)]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"

        def tuning(core: int) -> "subprocess.Popen[str]":
            options = ("--trials", "2", "--db", str(tmp_path / f"{core}.db"))
            command = [sys.executable, "-c", PINNED, str(core), "tune", "matmul", "16x16x16", *options]
            return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)

        with tuning(second) as apart:
            _, said = apart.communicate()
            assert (apart.returncode, "waiting for" in said) == (0, False)
        with tuning(first) as waiting:
            assert waiting.stderr is not None
            line = f"waiting for process {holder.pid}, matmul: it times on the same device\n"
            while (said := waiting.stderr.readline()) != line:
                assert said
            assert holder.poll() is None
            holder.communicate("go on\n")
            assert line not in waiting.communicate()[1]
            assert waiting.returncode == 0
