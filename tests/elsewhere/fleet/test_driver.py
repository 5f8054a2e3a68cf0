import contextlib
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.elsewhere.fleet.conftest import new_fleet
from tests.elsewhere.fleet.values import COMPILER_BUILD, FAILED, Connection, node, under_way, work
from tests.fakes import FakeTarget, bind, candidate
from tests.tuning import fakes
from tuner.core.candidate import TargetName
from tuner.core.errors import Failure, TunerError, UsageError
from tuner.core.interfaces import AbstractRunner, Effort
from tuner.core.matmul import Matmul
from tuner.core.requests import FleetRequest
from tuner.elsewhere.fleet import driver, queues, tables
from tuner.elsewhere.fleet.driver import Driver, DriverConnection
from tuner.elsewhere.fleet.runner import FleetTarget, fleet_backends, named, pending_limit, target_on
from tuner.elsewhere.fleet.server import session
from tuner.elsewhere.fleet.work import (
    BASELINE,
    COMPILE,
    EVALUATE,
    Compiled,
    Outcome,
    compile_queue,
    compiler_build_of,
    hash_of,
    packed,
)
from tuner.runtime.workers.runner import RunnerOrder
from tuner.targets.registry import real_backends
from tuner.targets.target import RunnerSettings

pytestmark = pytest.mark.postgres
TARGET = TargetName("fake")
PROBLEMS = (Matmul(8, 8, 8), Matmul(64, 8, 8), Matmul(64, 64, 8))
BUILD = compiler_build_of(fakes.FAKE.compiler(TARGET))
LEASE_S = 3600.0  # nodes are rows that send no heartbeat, and must not be lost while a test takes its time


@pytest.fixture
def fleet_url(postgres_server: str) -> str:
    return new_fleet(postgres_server, LEASE_S)


@pytest.fixture(scope="module")
def shared_url(postgres_server: str) -> str:
    return new_fleet(postgres_server, LEASE_S)


def test_a_whole_name_is_itself_and_words_are_in_names() -> None:
    machines = {"H200": 1, "H200 NVL": 2, "A100": 3}
    assert (named(machines, "H200"), named(machines, "nvl")) == ({"H200": 1}, {"H200 NVL": 2})
    assert (named(machines, "h200"), named(machines, "")) == ({"H200": 1, "H200 NVL": 2}, machines)
    assert [pending_limit(devices) for devices in (1, 2, 4)] == [3, 6, 10]
    with pytest.raises(UsageError, match="devices: found 0, allowed 1 or more"):
        FleetRequest("postgresql://x/y", devices=0)


def test_more_devices_than_measure_are_refused_before_a_run_is_stored(fleet_url: str) -> None:
    with session(fleet_url) as connection:
        for name in ("a", "b"):
            tables.store_node(connection, node(name, device=f"device of {name}"))
    for devices, allowed in ((2, None), (3, "devices: found 3, allowed 1 to 2: nodes measure on so many")):
        run = FleetTarget(fakes.FAKE, FleetRequest(fleet_url, devices=devices))
        with contextlib.nullcontext() if allowed is None else pytest.raises(UsageError, match=allowed):
            run.machine(TargetName("fake"))


@pytest.fixture
def fleet(fleet_url: str) -> FleetTarget:
    """Returns the parts of runs on a fleet with one node, which is a row: outcomes are told by hand."""
    with session(fleet_url) as connection:
        tables.store_node(connection, node("a", compiler_build=BUILD))
    return FleetTarget(fakes.FAKE, FleetRequest(fleet_url))


def runners_of(fleet: FleetTarget, runs: tuple[str, ...]) -> tuple[AbstractRunner, ...]:
    orders = tuple(RunnerOrder(problem, TARGET, bind, lambda *_: None) for problem in PROBLEMS[: len(runs)])
    return fleet.runners(orders, tuple(RunnerSettings(1, 2, 0, run=run) for run in runs))


def new_runs(count: int) -> tuple[str, ...]:
    return tuple(str(uuid.uuid4()) for _ in range(count))


@pytest.fixture
def two(fleet: FleetTarget, fleet_url: str) -> Iterator[tuple[tuple[str, ...], Any, Any, Connection]]:
    """Gives the uuids and runners of two runs of a campaign, each of which has begun its first candidate."""
    runs = new_runs(2)
    first, second = runners_of(fleet, runs)
    with contextlib.closing(first), contextlib.closing(second), session(fleet_url) as connection:
        first.start(0, candidate(3), Effort())
        second.start(0, candidate(4), Effort())
        yield runs, first, second, connection


def test_runs_of_a_campaign_are_queued_under_their_uuids_and_read_by_whichever_waits(
    two: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs, first, second, connection = two
    for run in runs:
        assert under_way(connection, run) == {(0, COMPILE)}
    for run in reversed(runs):
        tables.store_outcome(connection, (run, 0, COMPILE), FAILED, "a")
    assert first.finish().record.outcome == FAILED.value

    def no_wait(_connection: object) -> None:
        raise AssertionError("waits for what was read")

    monkeypatch.setattr(driver.DriverConnection, "wait", no_wait)
    found = second.finish().record
    assert isinstance(found.outcome, Failure)
    assert found.candidate == candidate(4)


def test_what_is_compiled_is_queued_while_another_run_waits(two: Any) -> None:
    runs, first, _, connection = two
    artifact = FakeTarget().compile(PROBLEMS[1], bind(candidate(4)))
    blob = packed(artifact)
    tables.store_blob(connection, hash_of(blob), blob)
    compiled = Outcome(Compiled(hash_of(blob), artifact.sha256, is_refused=False), 0.1)
    tables.store_outcome(connection, (runs[1], 0, COMPILE), compiled, "a")
    tables.store_outcome(connection, (runs[0], 0, COMPILE), FAILED, "a")
    first.finish()
    assert (0, EVALUATE) in under_way(connection, runs[1])


@pytest.mark.slow
def test_each_run_of_a_campaign_is_driven_by_one_process_until_the_last_bench_is_closed(
    fleet: FleetTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "TAKEN_LIMIT_S", 0.1)
    runs = new_runs(3)
    first, second, third = runners_of(fleet, runs)
    first.close()
    second.close()
    for asked in (runs[2:], runs):  # a campaign of which another process drives a run
        with pytest.raises(UsageError, match="another process drives this run"):
            runners_of(fleet, asked)
    third.close()
    (taken,) = runners_of(fleet, runs[2:])
    with contextlib.closing(taken):
        with pytest.raises(UsageError, match="another process drives this run"):
            runners_of(fleet, runs)
        for runner in runners_of(fleet, runs[:2]):  # their locks ended with the connection
            runner.close()


def join_class(connection: Connection, name: str, machine: str, target: str) -> None:
    described = replace(node(name).machine, name=machine)
    tables.store_node(connection, node(name, machine=described, target=target, device=f"device of {name}"))


def test_classes_of_machines_are_named_by_options(connection: Connection, shared_url: str) -> None:
    join_class(connection, "a", "NVIDIA H200", "cuda:sm_90")
    join_class(connection, "b", "NVIDIA A100", "cuda:sm_80")
    join_class(connection, "c", "EPYC", "cpu")
    fleet = FleetRequest(shared_url)
    assert target_on(fleet, "a100", "cuda").text == "cuda:sm_80"
    assert target_on(fleet, "epyc", "auto").text == "cpu"
    listed = r"allowed a part of the name of one of NVIDIA A100 \(cuda:sm_80\), NVIDIA H200 \(cuda:sm_90\)$"
    for word in ("nvidia", "epyc"):
        with pytest.raises(UsageError, match=rf"--on: found '{word}', {listed}"):
            target_on(fleet, word, "cuda")


def test_a_described_processor_is_measured_for_by_nodes_too(fleet_url: str) -> None:
    backends = fleet_backends(real_backends(), FleetRequest(fleet_url))
    target = TargetName("cpu", "znver4")
    message = "no node measures cpu:znver4; tuner fleet worker --target cpu:znver4"
    with pytest.raises(UsageError, match=message):
        backends.target(target).machine(target)


# A driver against a real server; what nodes would do is done by hand.


def new_driver(url: str, run: str) -> Driver:
    return Driver(FleetRequest(url), run, ("device",))


@pytest.fixture
def driving(connection: Connection, shared_url: str, run: str) -> Iterator[Driver]:
    assert under_way(connection, run) == set()
    with contextlib.closing(new_driver(shared_url, run)) as made:
        yield made


def test_what_is_known_or_under_way_is_not_queued_again(
    connection: Connection, shared_url: str, driving: Driver, run: str
) -> None:
    tables.store_outcome(connection, work(run, 1).key, FAILED, "node")
    driving.begin(work(run, 0))
    driving.close()
    with contextlib.closing(new_driver(shared_url, run)) as successor:
        for number in range(3):
            successor.begin(work(run, number))
        assert successor.known == {(1, "compile"): FAILED}
    assert under_way(connection, run) == {(0, "compile"), (2, "compile")}


def test_a_job_that_ends_after_its_outcome_was_taken_is_none_that_was_cancelled(
    connection: Connection, driving: Driver, run: str
) -> None:
    asked = driving.ask(work(run, stage=BASELINE))
    tables.store_outcome(connection, asked.key, FAILED, "node")
    assert driving.awaited(asked) == FAILED
    tables.notify_driver(connection, run)
    driving.wait()  # while the node has not said yet that the job is over
    connection.execute("DELETE FROM procrastinate_jobs")
    tables.notify_driver(connection, run)
    driving.wait()


def test_a_run_that_waits_for_long_says_why_once_a_lease(
    connection: Connection, shared_url: str, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "LISTEN_S", 0.01)
    given: list[str] = []
    line = DriverConnection(shared_url)
    driving = Driver(FleetRequest(shared_url), run, ("device",), given.append, shared=line)
    with contextlib.closing(driving) as waiting:
        waiting.begin(work(run))
        waiting.begin(work(run, 1))
        waiting.wait()
        assert given == []
        monkeypatch.setattr(line, "_heard_s", time.monotonic() - LEASE_S)
        for _ in range(3):
            waiting.wait()
        assert given == [f"no node compiles fake as {COMPILER_BUILD}; found none"]
        monkeypatch.setattr(line, "_heard_s", time.monotonic() - LEASE_S)
        tables.store_outcome(connection, work(run).key, FAILED, "node")
        waiting.wait()
        assert len(given) == 1


def test_jobs_that_are_taken_back_end_the_run(connection: Connection, driving: Driver, run: str) -> None:
    driving.begin(work(run))
    assert queues.cancel_run(connection, run) == 1
    tables.notify_driver(connection, run)
    with pytest.raises(TunerError, match="the jobs of the run were cancelled; go on with it by --resume"):
        driving.wait()


def test_one_driver_per_run(
    driving: Driver, shared_url: str, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    driving.begin(work(run))
    monkeypatch.setattr(driver, "TAKEN_LIMIT_S", 0.1)
    with pytest.raises(UsageError, match="another process drives this run"):
        new_driver(shared_url, run)


def test_what_a_run_waits_for_goes_before_trials(connection: Connection, driving: Driver, run: str) -> None:
    driving.begin(work(run))
    driving.ask(work(run))
    (found,) = queues.waiting(connection)
    assert found.queue == compile_queue(work(run).compiler_build)
    assert (found.todo, found.example.number < 0) == (2, True)
