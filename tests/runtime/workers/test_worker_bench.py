"""Drills: candidates that crash, hang, eat memory or lie, in real processes."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes import (
    BEST_X,
    HANG_S,
    await_death,
    bound,
    candidate,
    children_of,
    fake_factory,
    order,
    state_of,
    time_of,
)
from tuner.core.candidate import Candidate
from tuner.core.errors import Failure, Stage, TunerError
from tuner.core.interfaces import AbstractRunner, Effort
from tuner.core.records import Record
from tuner.runtime.workers.processes import TimingLock
from tuner.runtime.workers.protocol import Factory, Limits
from tuner.runtime.workers.runner import RunnerProcesses, WorkerRunner
from tuner.runtime.workers.services import compile_spec, evaluation_spec

# No deed meets another's limit: memory that a machine hands out for the first time can take seconds to touch.
LONG_TIMEOUT = Limits(compile_timeout_s=60.0, evaluation_timeout_s=60.0, memory_bytes=300 << 20)
HURRIED = Limits(compile_timeout_s=0.7, evaluation_timeout_s=1.0)
NO_BUDGET = Effort(budget_s=0.0)

DRILLS = {  # (deed, at): stage, reason
    ("segfault", "compile"): (Stage.COMPILE, r"killed by SIGSEGV$"),
    ("abort", "compile"): (Stage.COMPILE, r"killed by SIGABRT: LLVM ERROR: Cannot select: t5: f32 = fancy$"),
    ("loop", "compile"): (Stage.COMPILE, r"timed out after 0.7 s$"),
    ("hog", "compile"): (Stage.COMPILE, r"exceeded 300 MiB of memory$"),
    ("exit", "compile"): (Stage.COMPILE, r"exited with status 3$"),
    ("polite_exit", "compile"): (Stage.COMPILE, r"SystemExit: enough$"),
    ("unprintable", "compile"): (Stage.COMPILE, r"tests.fakes.UnprintableError: "),
    ("segfault", "load"): (Stage.RUN, r"killed by SIGSEGV, as by an access"),
    ("loop", "verify"): (Stage.RUN, r"timed out after 1 s$"),
    ("wrong", "verify"): (Stage.VERIFY, r"element \(0, 1\): found 2, expected 1$"),
    ("abort", "measure"): (Stage.RUN, r"killed by SIGABRT: LLVM ERROR: Cannot select: t5: f32 = fancy$"),
    ("sleep", "measure"): (Stage.RUN, r"timed out after 1 s$"),
    ("hog", "measure"): (Stage.RUN, r"exceeded 300 MiB of memory$"),
    ("exit", "measure"): (Stage.RUN, r"exited with status 3$"),
}
ENDLESS = frozenset({"loop", "sleep"})


def runner_of(
    factory: Factory | None = None, workers: int = 2, limits: Limits = LONG_TIMEOUT
) -> WorkerRunner:
    target = factory or fake_factory()
    specs = compile_spec(target), evaluation_spec(target)
    return WorkerRunner(order(), RunnerProcesses(*specs, workers, limits), 0)


@pytest.fixture(scope="module")
def runner() -> Iterator[AbstractRunner]:
    made = runner_of()
    yield made
    made.close()


def run(runner: AbstractRunner, *candidates: Candidate) -> list[Record]:
    for number, chosen in enumerate(candidates):
        runner.start(number, chosen, NO_BUDGET)
    return [runner.finish().record for _ in candidates]


@pytest.mark.parametrize(
    "drills",
    [
        [(deed, at) for deed, at in DRILLS if deed not in ENDLESS and at == "compile"],
        [(deed, at) for deed, at in DRILLS if deed not in ENDLESS and at != "compile"],
        [(deed, at) for deed, at in DRILLS if deed in ENDLESS],
    ],
    ids=["compiling", "running", "without end"],
)
def test_hostile_candidates_are_failures_and_the_run_goes_on(drills: list[tuple[str, str]]) -> None:
    """Each drill is followed by an honest candidate, which is slower than all of them would be."""
    runner = runner_of(limits=HURRIED if drills[0][0] in ENDLESS else LONG_TIMEOUT)
    records = run(
        runner, *(each for deed, at in drills for each in (candidate(BEST_X, deed, at), candidate(3)))
    )
    runner.close()
    for drill, hostile, honest in zip(drills, records[::2], records[1::2], strict=True):
        stage, reason = DRILLS[drill]
        assert isinstance(hostile.outcome, Failure), drill
        assert hostile.outcome.stage == stage, drill
        assert re.search(reason, hostile.outcome.reason), hostile.outcome.reason
        assert (hostile.median_s, honest.median_s) == (None, time_of(3)), drill


def test_garbage_on_stdout_and_stderr_does_no_harm(runner: AbstractRunner) -> None:
    records = run(runner, candidate(3, "babble", "compile"), candidate(4, "babble", "measure"))
    assert [record.median_s for record in records] == [time_of(3), time_of(4)]


def test_a_crash_that_an_earlier_candidate_caused_is_not_blamed_on_the_next(runner: AbstractRunner) -> None:
    records = run(runner, candidate(3, "scar", "load"), candidate(4, "crash_if_used", "load"))
    assert [record.median_s for record in records] == [time_of(3), time_of(4)]


def test_the_process_of_a_wrong_candidate_judges_no_other(runner: AbstractRunner) -> None:
    run(runner, candidate(2), candidate(3, "scar", "load"))
    before = set(children_of(os.getpid()))
    run(runner, candidate(3, "wrong", "verify"))
    assert len(before - set(children_of(os.getpid()))) == 1


@pytest.mark.slow
def test_a_grandchild_ends_with_a_candidate_that_hangs(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    runner = runner_of(limits=HURRIED)
    (record,) = run(runner, candidate(3, "grandchild", "verify", note=str(note)))
    runner.close()
    assert record.outcome == Failure(Stage.RUN, "timed out after 1 s")
    assert await_death([int(note.read_text())]) == []


@pytest.mark.slow
def test_a_time_out_grows_with_the_incumbent() -> None:
    runner = runner_of(limits=Limits(evaluation_timeout_s=0.2))
    try:
        runner.start(0, candidate(3, "sleep", "measure"), Effort(budget_s=0.0, stop_above_s=0.02))
        record = runner.finish().record
    finally:
        runner.close()
    assert record.outcome == Failure(Stage.RUN, "timed out after 0.6 s")  # 0.2 + 20 calls


@pytest.mark.slow
def test_nothing_compiles_while_a_candidate_is_timed(tmp_path: Path) -> None:
    factory = Factory("tests.fakes:ClockedTarget", (str(tmp_path), 0.25, 0.1))
    runner = runner_of(factory, limits=Limits())
    records = run(runner, *(candidate(x) for x in range(8)))
    runner.remeasure(tuple(map(bound, records[:2])), NO_BUDGET)
    runner.close()
    timings = [json.loads(path.read_text()) for path in tmp_path.glob("timing-*")]
    compiles = [json.loads(path.read_text()) for path in tmp_path.glob("compile-*")]
    assert (len(timings), len(compiles)) == (9, 10)
    inside = [tick for ticks in compiles for tick in ticks for start, end in timings if start < tick < end]
    spanned = [1 for ticks in compiles for start, end in timings if ticks[0] < start and end < ticks[-1]]
    assert inside == []
    assert spanned  # else the test would show nothing


@pytest.mark.slow
def test_pauses_do_not_count_against_the_time_limit_of_a_compile(tmp_path: Path) -> None:
    factory = Factory("tests.fakes:ClockedTarget", (str(tmp_path), 0.3, 0.6))
    runner = runner_of(factory, limits=Limits(compile_timeout_s=0.6))
    records = run(runner, *(candidate(x) for x in range(3)))
    runner.close()
    assert [record.status for record in records] == ["measured"] * 3


@pytest.mark.slow
def test_while_another_tuner_times_a_bench_waits_and_that_does_not_count(tmp_path: Path) -> None:
    target, other = fake_factory(), TimingLock("cpu", "process 7, matmul", folder=tmp_path)
    given: list[str] = []
    is_over = threading.Event()

    def hold_longer_than_a_candidate_may_take() -> None:
        with other.held():
            holds.set()
            while not given:
                time.sleep(0.01)
            time.sleep(2 * HURRIED.evaluation_timeout_s)
            is_over.set()

    holds = threading.Event()
    holding = threading.Thread(target=hold_longer_than_a_candidate_may_take)
    holding.start()
    holds.wait()
    exclusive = TimingLock("cpu", "me", given.append, tmp_path)
    limits = Limits(evaluation_timeout_s=HURRIED.evaluation_timeout_s)
    specs = compile_spec(target), evaluation_spec(target)
    runner = WorkerRunner(order(), RunnerProcesses(*specs, 1, limits, exclusive.held), 0)
    (record,) = run(runner, candidate(3))
    runner.close()
    holding.join()
    assert is_over.is_set()
    assert record.median_s == time_of(3)
    assert given == ["process 7, matmul"]


@pytest.mark.slow
def test_closing_leaves_no_process_and_no_zombie() -> None:
    before = set(children_of(os.getpid()))
    runner = runner_of()
    run(runner, candidate(3), candidate(3, "segfault", "load"))
    runner.start(0, candidate(4, "loop", "compile"), NO_BUDGET)
    started = set(children_of(os.getpid())) - before
    runner.close()
    assert len(started) == 3
    assert set(children_of(os.getpid())) <= before


@pytest.mark.slow
def test_an_interrupted_bench_can_be_closed() -> None:
    before = set(children_of(os.getpid()))
    runner = runner_of(limits=Limits())
    runner.start(0, candidate(3, "sleep", "measure"), NO_BUDGET)
    runner.start(0, candidate(4, "sleep", "compile"), NO_BUDGET)
    timer = threading.Timer(0.6, os.kill, (os.getpid(), signal.SIGINT))

    def finish_interrupted() -> None:
        timer.start()  # on a busy machine the signal may come before the next line
        runner.finish()

    with pytest.raises(KeyboardInterrupt):
        finish_interrupted()
    runner.close()
    timer.join()
    assert set(children_of(os.getpid())) <= before


PARENT = """
import time
from tests.fakes import candidate
from tests.runtime.workers.test_worker_bench import runner_of, NO_BUDGET
from tuner.runtime.workers.protocol import Limits
bench = runner_of(limits=Limits())
bench.start(0, candidate(1), NO_BUDGET)
bench.finish()
bench.start(0, candidate(3, "loop", "{at}"), NO_BUDGET)
bench.start(0, candidate(4, "loop", "compile"), NO_BUDGET)
print("at work", flush=True)
bench.finish()
"""


def stopped_of(processes: list[int]) -> int:
    return sum(state_of(process) == "T" for process in processes)


@pytest.mark.slow
@pytest.mark.parametrize("at", ["compile", "measure"])
def test_kill_9_of_the_tuner_leaves_no_child(at: str) -> None:
    """At ``measure`` the compile children are stopped: they must die as well."""
    parent = subprocess.Popen([sys.executable, "-c", PARENT.format(at=at)], stdout=subprocess.PIPE)
    with parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"at work\n"
        children = children_of(parent.pid)
        give_up_s = time.monotonic() + HANG_S
        while (stopped := stopped_of(children)) != (2 if at == "measure" else 0):
            assert time.monotonic() < give_up_s, stopped
        parent.kill()
    assert len(children) == 3
    assert await_death(children) == []


@pytest.mark.slow
def test_a_compiler_that_cannot_start_ends_the_run_with_the_reason() -> None:
    before = set(children_of(os.getpid()))
    runner = runner_of(Factory("tests.fakes:BrokenTarget"))
    with pytest.raises(TunerError, match=r"worker did not start: ImportError: no module named 'mlir'"):
        run(runner, candidate(3))
    runner.close()
    assert set(children_of(os.getpid())) <= before


@pytest.mark.slow
def test_a_bench_needs_a_worker() -> None:
    with pytest.raises(ValueError, match=r"workers: found 0, allowed 1 or more"):
        runner_of(workers=0)
