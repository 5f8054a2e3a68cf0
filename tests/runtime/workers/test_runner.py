"""What holds for every runner, with child processes or without; candidates that crash, hang or lie."""

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests import fakes
from tests.fakes import BEST_X, HANG_S, bound, candidate, children_of, fake_factory, order, time_of
from tuner.core.candidate import Candidate, TargetName
from tuner.core.errors import Failure, Stage, TunerError
from tuner.core.interfaces import AbstractRunner, Effort, FinalTimes
from tuner.core.records import Measurement, Record, Verdict
from tuner.runtime.timing_lock import LockWait, TimingLock
from tuner.runtime.workers.limits import Limits
from tuner.runtime.workers.protocol import Factory
from tuner.runtime.workers.runner import RunnerOrder, RunnerProcesses, TrialRunner
from tuner.runtime.workers.services import compile_spec, evaluation_spec

NO_BUDGET = Effort(budget_s=0.0)
Build = Callable[[RunnerOrder], AbstractRunner]


def build_local(of: RunnerOrder) -> AbstractRunner:
    return TrialRunner.local(of, fakes.FakeTarget(), fakes.FakeTarget(), 0)


def build_workers(of: RunnerOrder) -> AbstractRunner:
    return runner_of(limits=Limits(), of=of)


@pytest.fixture(scope="module", params=[build_local, build_workers], ids=["local", "workers"])
def build(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(scope="module")
def shared(build: Build) -> Iterator[tuple[AbstractRunner, fakes.Memory]]:
    memory = fakes.Memory()
    runner = build(order(memory))
    yield runner, memory
    runner.close()


@pytest.fixture
def runner(shared: tuple[AbstractRunner, fakes.Memory]) -> AbstractRunner:
    shared[1].records.clear()
    return shared[0]


@pytest.fixture
def memory(shared: tuple[AbstractRunner, fakes.Memory]) -> fakes.Memory:
    return shared[1]


def run(runner: AbstractRunner, *candidates: Candidate, memory: fakes.Memory | None = None) -> list[Record]:
    """Starts all, then finishes all; each record is remembered before the next is asked for."""
    for number, chosen in enumerate(candidates):
        runner.start(number, chosen, NO_BUDGET)
    records = []
    for _ in candidates:
        records.append(runner.finish().record)
        if memory is not None:
            memory.append(records[-1])
    return records


def run_and_close(runner: AbstractRunner, *candidates: Candidate) -> list[Record]:
    with closing(runner):
        return run(runner, *candidates)


def test_records_come_in_the_order_of_starts_and_report_the_whole_way(runner: AbstractRunner) -> None:
    chosen = [candidate(x) for x in (3, 9, 1, 7, 5)]
    records = run(runner, *chosen)
    assert [record.candidate for record in records] == chosen
    assert [record.median_s for record in records] == [time_of(x) for x in (3, 9, 1, 7, 5)]
    (record,) = run(runner, candidate(BEST_X))
    assert isinstance(record.outcome, Measurement)
    assert record.verdict == Verdict(0.25, 64)
    assert (record.target, record.reused_from) == (TargetName("fake"), None)
    assert record.script_sha256 == fakes.bind(candidate(BEST_X)).sha256
    assert len(record.artifact_sha256) == 64
    assert tuple(stage for stage, _ in record.stage_s) == fakes.STAGES
    assert dict(record.stage_s)["lower"] == 2e-4
    assert all(seconds >= 0 for _, seconds in record.stage_s)


@pytest.mark.parametrize(("at", "is_bound"), [("bind", False), ("compile", True), ("", True)])
def test_the_bound_script_comes_with_the_record(runner: AbstractRunner, at: str, is_bound: bool) -> None:
    chosen = candidate(3, "fail" if at else "", at)
    runner.start(0, chosen, NO_BUDGET)
    finished = runner.finish()
    assert finished.record.candidate == chosen
    assert finished.script.sha256 == finished.record.script_sha256
    assert bool(finished.script.text) == is_bound
    if is_bound:
        assert finished.script == fakes.bind(chosen)


@pytest.mark.parametrize(
    ("at", "deed", "failure"),
    [
        ("bind", "fail", Failure(Stage.BIND, "fails at bind")),
        ("compile", "fail", Failure(Stage.COMPILE, "fails at compile")),
        ("compile", "odd", Failure(Stage.COMPILE, "KeyError: 'tile_m'")),
        ("load", "fail", Failure(Stage.LOAD, "fails at load")),
        ("verify", "wrong", Failure(Stage.VERIFY, "element (0, 1): found 2, expected 1")),
        ("measure", "fail", Failure(Stage.MEASURE, "fails at measure")),
        ("measure", "odd", Failure(Stage.RUN, "KeyError: 'tile_m'")),
    ],
)
def test_a_failure_has_its_stage_and_no_time_and_the_next_goes_on(
    runner: AbstractRunner, at: str, deed: str, failure: Failure
) -> None:
    failed, good = run(runner, candidate(BEST_X, deed, at), candidate(3))
    assert failed.outcome == failure
    assert failed.median_s is None
    assert failed.stage_s[-1][0] == failure.stage.value
    assert good.median_s == time_of(3)


def test_an_exception_that_cannot_be_printed_or_pickled_is_a_failure(runner: AbstractRunner) -> None:
    (record,) = run(runner, candidate(3, "unprintable", "verify"))
    assert isinstance(record.outcome, Failure)
    assert record.outcome.reason.startswith("tests.fakes.UnprintableError: ")


def test_a_known_script_failure_or_code_is_reused(runner: AbstractRunner, memory: fakes.Memory) -> None:
    (first,) = run(runner, candidate(3), memory=memory)
    (again,) = run(runner, candidate(3))
    assert again.reused_from == 0
    assert (again.outcome, again.verdict) == (first.outcome, first.verdict)
    assert again.artifact_sha256 == first.artifact_sha256
    assert [stage for stage, _ in again.stage_s] == ["bind"]
    run(runner, candidate(3, "fail", "load"), memory=memory)
    (again,) = run(runner, candidate(3, "fail", "load"))
    assert again.outcome == Failure(Stage.LOAD, "fails at load")
    assert again.reused_from is not None
    (first,) = run(runner, candidate(3), memory=memory)
    (same_code,) = run(runner, candidate(3, comment="spelt otherwise"))
    assert same_code.candidate == candidate(3, comment="spelt otherwise")
    assert same_code.script_sha256 != first.script_sha256
    assert (same_code.artifact_sha256, same_code.reused_from) == (first.artifact_sha256, 0)
    assert [stage for stage, _ in same_code.stage_s] == ["bind", "transform", "lower"]


def test_of_two_twins_the_later_reuses_the_earlier(runner: AbstractRunner, memory: fakes.Memory) -> None:
    first, second = run(runner, candidate(3), candidate(3))
    assert first.reused_from is second.reused_from is None
    assert second.median_s == time_of(3)
    twins = candidate(3), candidate(3), candidate(3, comment="twin")
    first, same_script, same_code = run(runner, *twins, memory=memory)
    assert first.reused_from is None
    assert (same_script.reused_from, same_code.reused_from) == (0, 0)
    assert [stage for stage, _ in same_script.stage_s] == ["bind"]


def test_the_limit_of_the_incumbent_reaches_the_target(runner: AbstractRunner) -> None:
    runner.start(0, candidate(1), replace(NO_BUDGET, stop_above_s=time_of(BEST_X)))
    record = runner.finish().record
    assert isinstance(record.outcome, Measurement)
    assert not record.outcome.is_complete


def test_remeasurement_is_in_order_and_none_for_what_does_not_compile(runner: AbstractRunner) -> None:
    good, better = run(runner, candidate(3), candidate(BEST_X))
    broken = replace(good, candidate=candidate(3, "fail", "compile"))
    unloadable = replace(good, candidate=candidate(3, "fail", "load"))
    found = runner.remeasure(tuple(map(bound, (good, broken, better, unloadable))), NO_BUDGET)
    assert [time and time.median_s for time in found.measured] == [time_of(3), None, time_of(BEST_X), None]
    assert [failure.stage for failure in found.failures] == [Stage.COMPILE, Stage.LOAD]
    assert runner.remeasure((), NO_BUDGET) == FinalTimes(())


@pytest.mark.slow
def test_remeasurement_go_on_without_the_one_that_breaks_them(runner: AbstractRunner) -> None:
    good, better = run(runner, candidate(3), candidate(BEST_X))
    breaking = replace(good, candidate=candidate(4, "odd", "together"))
    found = runner.remeasure(tuple(map(bound, (good, breaking, better))), NO_BUDGET)
    assert [time is None for time in found.measured] == [False, True, False]


def test_closing_twice_and_with_work_pending_is_fine(build: Build) -> None:
    runner = build(order())
    runner.start(0, candidate(3), NO_BUDGET)
    runner.close()
    runner.close()


# Drills, in real processes.

# No deed meets another's limit: memory that a machine hands out for the first time can take seconds to touch.
LONG_TIMEOUT = Limits(compile_timeout_s=60.0, evaluation_timeout_s=60.0, memory_bytes=300 << 20)
HURRIED = Limits(compile_timeout_s=0.7, evaluation_timeout_s=1.0)

Drills = tuple[tuple[str, str, Stage, str], ...]  # deed, at, stage, reason
LLVM_ERROR = r"killed by SIGABRT(?: in timing of the kernel)?: LLVM ERROR: Cannot select: t5: f32 = fancy$"
DRILLS: dict[str, Drills] = {
    "compiling": (
        ("segfault", "compile", Stage.COMPILE, r"killed by SIGSEGV$"),
        ("abort", "compile", Stage.COMPILE, LLVM_ERROR),
        ("hog", "compile", Stage.COMPILE, r"exceeded 300 MiB of memory$"),
        ("exit", "compile", Stage.COMPILE, r"exited with status 3$"),
        ("polite_exit", "compile", Stage.COMPILE, r"SystemExit: enough$"),
        ("unprintable", "compile", Stage.COMPILE, r"tests.fakes.UnprintableError: "),
    ),
    "running": (
        ("segfault", "load", Stage.RUN, r"killed by SIGSEGV in loading of the code$"),
        ("abort", "measure", Stage.RUN, LLVM_ERROR),
        ("hog", "measure", Stage.RUN, r"exceeded 300 MiB of memory in timing of the kernel$"),
        ("exit", "measure", Stage.RUN, r"exited with status 3 in timing of the kernel$"),
    ),
    "without end": (
        ("loop", "compile", Stage.COMPILE, r"timed out after 0.7 s$"),
        ("loop", "verify", Stage.RUN, r"timed out after 1 s in verification of the kernel$"),
        ("sleep", "measure", Stage.RUN, r"timed out after 1 s in timing of the kernel$"),
    ),
}


def runner_of(target: Factory | None = None, of: RunnerOrder | None = None, **processes: Any) -> TrialRunner:
    processes = {"workers": 2, "limits": LONG_TIMEOUT, **processes}
    specs = compile_spec(target or fake_factory()), evaluation_spec(target or fake_factory())
    return TrialRunner.in_children(of or order(), RunnerProcesses(*specs, **processes), 0)


@pytest.fixture(scope="module")
def workers() -> Iterator[AbstractRunner]:
    made = runner_of()
    yield made
    made.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("drills", "limits"),
    [*((drills, HURRIED if name == "without end" else LONG_TIMEOUT) for name, drills in DRILLS.items())],
    ids=DRILLS,
)
def test_hostile_candidates_are_failures_and_the_run_goes_on(drills: Drills, limits: Limits) -> None:
    """Each drill is followed by an honest candidate, which is slower than all of them would be."""
    pairs = ((candidate(BEST_X, deed, at), candidate(3)) for deed, at, _, _ in drills)
    records = run_and_close(runner_of(limits=limits), *itertools.chain(*pairs))
    for drill, hostile, honest in zip(drills, records[::2], records[1::2], strict=True):
        _, _, stage, reason = drill
        assert isinstance(hostile.outcome, Failure), drill
        assert hostile.outcome.stage == stage, drill
        assert re.search(reason, hostile.outcome.reason), hostile.outcome.reason
        assert (hostile.median_s, honest.median_s) == (None, time_of(3)), drill


def test_garbage_on_stdout_and_a_crash_that_another_caused_do_no_harm(workers: AbstractRunner) -> None:
    records = run(workers, candidate(3, "babble", "compile"), candidate(4, "babble", "measure"))
    assert [record.median_s for record in records] == [time_of(3), time_of(4)]
    records = run(workers, candidate(3, "scar", "load"), candidate(4, "crash_if_used", "load"))
    assert [record.median_s for record in records] == [time_of(3), time_of(4)]


def test_the_process_of_a_wrong_candidate_judges_no_other(workers: AbstractRunner) -> None:
    run(workers, candidate(2), candidate(3, "scar", "load"))
    before = set(children_of(os.getpid()))
    run(workers, candidate(3, "wrong", "verify"))
    assert len(before - set(children_of(os.getpid()))) == 1


@pytest.mark.slow
def test_a_grandchild_ends_with_a_candidate_that_hangs(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    (record,) = run_and_close(runner_of(limits=HURRIED), candidate(3, "grandchild", "verify", note=str(note)))
    assert record.outcome == Failure(Stage.RUN, "timed out after 1 s in verification of the kernel")
    assert fakes.await_death([int(note.read_text())]) == []


@pytest.mark.slow
def test_a_time_out_grows_with_the_incumbent() -> None:
    with closing(runner_of(limits=Limits(evaluation_timeout_s=0.2))) as runner:
        runner.start(0, candidate(3, "sleep", "measure"), Effort(budget_s=0.0, stop_above_s=0.02))
        record = runner.finish().record
    assert record.outcome == Failure(Stage.RUN, "timed out after 0.6 s in timing of the kernel")


@pytest.mark.slow
def test_nothing_compiles_while_a_candidate_is_timed(tmp_path: Path) -> None:
    runner = runner_of(Factory("tests.fakes:ClockedTarget", (str(tmp_path), 0.25, 0.1)), limits=Limits())
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
    records = run_and_close(runner, *(candidate(x) for x in range(3)))
    assert [record.status for record in records] == ["measured"] * 3


@pytest.mark.slow
def test_while_another_tuner_times_a_bench_waits_and_that_does_not_count(tmp_path: Path) -> None:
    other = TimingLock("cpu", "process 7, matmul", folder=tmp_path)
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
    exclusive = TimingLock("cpu", "me", LockWait(given.append), tmp_path)
    limits = Limits(evaluation_timeout_s=HURRIED.evaluation_timeout_s)
    (record,) = run_and_close(runner_of(workers=1, limits=limits, exclusive=exclusive.held), candidate(3))
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
    runner.start(1, candidate(4, "sleep", "compile"), NO_BUDGET)
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
from tests.runtime.workers.test_runner import runner_of, NO_BUDGET
from tuner.runtime.workers.limits import Limits
bench = runner_of(limits=Limits())
bench.start(0, candidate(1), NO_BUDGET)
bench.finish()
bench.start(1, candidate(3, "loop", "{at}"), NO_BUDGET)
bench.start(2, candidate(4, "loop", "compile"), NO_BUDGET)
print("at work", flush=True)
bench.finish()
"""


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
        while [fakes.state_of(child) for child in children].count("T") != (2 if at == "measure" else 0):
            assert time.monotonic() < give_up_s
        parent.kill()
    assert len(children) == 3
    assert fakes.await_death(children) == []


@pytest.mark.slow
def test_a_run_needs_a_worker_and_a_compiler_that_can_start() -> None:
    before = set(children_of(os.getpid()))
    runner = runner_of(Factory("tests.fakes:BrokenTarget"))
    with pytest.raises(TunerError, match=r"worker did not start: ImportError: no module named 'mlir'"):
        run(runner, candidate(3))
    runner.close()
    assert set(children_of(os.getpid())) <= before
    with pytest.raises(ValueError, match=r"workers: found 0, allowed 1 or more"):
        runner_of(workers=0)
