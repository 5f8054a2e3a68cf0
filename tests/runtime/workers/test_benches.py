"""What holds for every runner, with child processes or without."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from tests.fakes import (
    BEST_X,
    STAGES,
    FakeTarget,
    Memory,
    bind,
    bound,
    candidate,
    fake_factory,
    order,
    time_of,
)
from tuner.core.candidate import Candidate, TargetName
from tuner.core.errors import Failure, Stage
from tuner.core.interfaces import AbstractRunner, Effort, FinalTimes
from tuner.core.records import Measurement, Record, Verdict
from tuner.runtime.workers.protocol import Limits
from tuner.runtime.workers.runner import LocalRunner, RunnerOrder, RunnerProcesses, WorkerRunner
from tuner.runtime.workers.services import compile_spec, evaluation_spec

Build = Callable[[RunnerOrder], AbstractRunner]


def build_local(of: RunnerOrder) -> AbstractRunner:
    return LocalRunner(of, FakeTarget(), FakeTarget(), 0)


def build_workers(of: RunnerOrder) -> AbstractRunner:
    specs = compile_spec(fake_factory()), evaluation_spec(fake_factory())
    return WorkerRunner(of, RunnerProcesses(*specs, 2, Limits()), 0)


@pytest.fixture(scope="module", params=[build_local, build_workers], ids=["local", "workers"])
def build(request: pytest.FixtureRequest) -> Build:
    made: Build = request.param
    return made


@pytest.fixture(scope="module")
def shared(build: Build) -> Iterator[tuple[AbstractRunner, Memory]]:
    """Gives a runner of all tests of its kind, whose processes start once, and what it recalls."""
    memory = Memory()
    runner = build(order(memory))
    yield runner, memory
    runner.close()


@pytest.fixture
def runner(shared: tuple[AbstractRunner, Memory]) -> AbstractRunner:
    """Gives the runner, which knows nothing yet."""
    shared[1].records.clear()
    return shared[0]


@pytest.fixture
def memory(shared: tuple[AbstractRunner, Memory]) -> Memory:
    return shared[1]


def run(runner: AbstractRunner, *candidates: Candidate, memory: Memory | None = None) -> list[Record]:
    """Starts all, then finishes all; each record is remembered before the next is asked for."""
    for number, chosen in enumerate(candidates):
        runner.start(number, chosen, Effort())
    records = []
    for _ in candidates:
        records.append(runner.finish().record)
        if memory is not None:
            memory.append(records[-1])
    return records


def test_records_come_in_the_order_of_starts(runner: AbstractRunner) -> None:
    chosen = [candidate(x) for x in (3, 9, 1, 7, 5)]
    records = run(runner, *chosen)
    assert [record.candidate for record in records] == chosen
    assert [record.median_s for record in records] == [time_of(x) for x in (3, 9, 1, 7, 5)]


def test_a_record_reports_the_whole_way(runner: AbstractRunner) -> None:
    (record,) = run(runner, candidate(BEST_X))
    assert isinstance(record.outcome, Measurement)
    assert record.verdict == Verdict(0.25, 64)
    assert (record.target, record.reused_from) == (TargetName("fake"), None)
    assert record.script_sha256 == bind(candidate(BEST_X)).sha256
    assert len(record.artifact_sha256) == 64
    assert tuple(stage for stage, _ in record.stage_s) == STAGES
    assert dict(record.stage_s)["lower"] == 2e-4
    assert all(seconds >= 0 for _, seconds in record.stage_s)


@pytest.mark.parametrize(("at", "is_bound"), [("bind", False), ("compile", True), ("", True)])
def test_the_script_that_was_bound_comes_with_the_record(
    runner: AbstractRunner, at: str, is_bound: bool
) -> None:
    chosen = candidate(3, "fail" if at else "", at)
    runner.start(0, chosen, Effort())
    finished = runner.finish()
    assert finished.record.candidate == chosen
    assert finished.script.sha256 == finished.record.script_sha256
    assert bool(finished.script.text) == is_bound
    if is_bound:
        assert finished.script == bind(chosen)


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


def test_a_known_script_or_failure_is_reused_and_not_compiled(runner: AbstractRunner, memory: Memory) -> None:
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


def test_known_code_of_another_script_is_reused_and_keeps_its_own_candidate(
    runner: AbstractRunner, memory: Memory
) -> None:
    (first,) = run(runner, candidate(3), memory=memory)
    (same_code,) = run(runner, candidate(3, comment="spelt otherwise"))
    assert same_code.candidate == candidate(3, comment="spelt otherwise")
    assert same_code.script_sha256 != first.script_sha256
    assert same_code.artifact_sha256 == first.artifact_sha256
    assert same_code.reused_from == 0
    assert [stage for stage, _ in same_code.stage_s] == ["bind", "transform", "lower"]


def test_of_two_pending_twins_the_later_reuses_the_earlier(runner: AbstractRunner, memory: Memory) -> None:
    first, same_script, same_code = run(
        runner, candidate(3), candidate(3), candidate(3, comment="twin"), memory=memory
    )
    assert first.reused_from is None
    assert (same_script.reused_from, same_code.reused_from) == (0, 0)
    assert [stage for stage, _ in same_script.stage_s] == ["bind"]


def test_a_twin_whose_elder_was_not_remembered_is_measured_itself(runner: AbstractRunner) -> None:
    first, second = run(runner, candidate(3), candidate(3))
    assert first.reused_from is second.reused_from is None
    assert second.median_s == time_of(3)


def test_the_limit_of_the_incumbent_reaches_the_target(runner: AbstractRunner) -> None:
    runner.start(0, candidate(1), replace(Effort(), stop_above_s=time_of(BEST_X)))
    record = runner.finish().record
    assert isinstance(record.outcome, Measurement)
    assert not record.outcome.is_complete


def test_remeasurement_are_in_the_order_given_and_none_for_what_does_not_compile(
    runner: AbstractRunner,
) -> None:
    good, better = run(runner, candidate(3), candidate(BEST_X))
    broken = replace(good, candidate=candidate(3, "fail", "compile"))
    unloadable = replace(good, candidate=candidate(3, "fail", "load"))
    times = runner.remeasure(tuple(map(bound, (good, broken, better, unloadable))), Effort()).times
    assert [time and time.median_s for time in times] == [time_of(3), None, time_of(BEST_X), None]
    assert runner.remeasure((), Effort()) == FinalTimes(())


@pytest.mark.slow
def test_remeasurement_go_on_without_the_one_that_breaks_them(runner: AbstractRunner) -> None:
    good, better = run(runner, candidate(3), candidate(BEST_X))
    breaking = replace(good, candidate=candidate(4, "odd", "together"))
    times = runner.remeasure(tuple(map(bound, (good, breaking, better))), Effort()).times
    assert [time is None for time in times] == [False, True, False]


def test_closing_twice_and_with_work_pending_is_fine(build: Build) -> None:
    runner = build(order())
    runner.start(0, candidate(3), Effort())
    runner.close()
    runner.close()
