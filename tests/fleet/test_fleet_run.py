import contextlib
import uuid

import pytest

from tests.fakes import FakeTarget, bind, candidate
from tests.fleet.values import FAILED, node, under_way
from tests.tuning import fakes
from tuner.core.candidate import TargetName
from tuner.core.errors import Failure, UsageError
from tuner.core.interfaces import AbstractRunner, Effort
from tuner.core.problem import Matmul
from tuner.core.requests import FleetRequest
from tuner.fleet import driver, tables
from tuner.fleet.runner import FleetRun, named
from tuner.fleet.server import session
from tuner.fleet.work import COMPILE, EVALUATE, Compiled, Outcome, compiler_build_of, hash_of, packed
from tuner.runtime.workers.runner import RunnerOrder
from tuner.targets.interface import RunnerSettings

pytestmark = pytest.mark.postgres
TARGET = TargetName("fake")
PROBLEMS = (Matmul(8, 8, 8), Matmul(64, 8, 8), Matmul(64, 64, 8))
BUILD = compiler_build_of(fakes.FAKE.outcomes.compiler(TARGET))


def test_a_whole_name_is_itself_and_words_are_in_names() -> None:
    machines = {"H200": 1, "H200 NVL": 2, "A100": 3}
    assert named(machines, "H200") == {"H200": 1}
    assert named(machines, "nvl") == {"H200 NVL": 2}
    assert named(machines, "h200") == {"H200": 1, "H200 NVL": 2}
    assert named(machines, "") == machines


def test_more_devices_than_measure_are_refused_before_a_run_is_stored(fleet_url: str) -> None:
    with session(fleet_url) as connection:
        for name in ("a", "b"):
            tables.join(connection, node(name, device=f"device of {name}"))
    for devices, allowed in ((2, None), (3, "devices: found 3, allowed 1 to 2: nodes measure on so many")):
        run = FleetRun(fakes.FAKE.outcomes, FleetRequest(fleet_url, devices=devices))
        with contextlib.nullcontext() if allowed is None else pytest.raises(UsageError, match=allowed):
            run.machine(TargetName("fake"))


@pytest.fixture
def fleet(fleet_url: str) -> FleetRun:
    """Returns the parts of runs on a fleet with one node, which is a row: outcomes are told by hand."""
    with session(fleet_url) as connection:
        tables.join(connection, node("a", compiler_build=BUILD))
    return FleetRun(fakes.FAKE.outcomes, FleetRequest(fleet_url))


def runners_of(fleet: FleetRun, runs: tuple[str, ...]) -> tuple[AbstractRunner, ...]:
    """Returns the runners of a campaign whose runs have these uuids."""
    orders = tuple(RunnerOrder(problem, TARGET, bind, lambda *_: None) for problem in PROBLEMS[: len(runs)])
    return fleet.runners(orders, tuple(RunnerSettings(1, 2, 0, run=run) for run in runs))


def new_runs(count: int) -> tuple[str, ...]:
    return tuple(str(uuid.uuid4()) for _ in range(count))


def test_runs_of_a_campaign_are_queued_under_their_uuids_and_read_by_whichever_waits(
    fleet: FleetRun, fleet_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = new_runs(2)
    first, second = runners_of(fleet, runs)
    with contextlib.closing(first), contextlib.closing(second), session(fleet_url) as connection:
        first.start(0, candidate(3), Effort())
        second.start(0, candidate(4), Effort())
        for run in runs:
            assert under_way(connection, run) == {(0, COMPILE)}
        for run in reversed(runs):
            tables.tell(connection, (run, 0, COMPILE), FAILED, "a")
        assert first.finish().record.outcome == FAILED.value

        def no_wait(_connection: object) -> None:
            raise AssertionError("waits for what was read")

        monkeypatch.setattr(driver.DriverConnection, "wait", no_wait)
        found = second.finish().record
        assert isinstance(found.outcome, Failure)
        assert found.candidate == candidate(4)


def test_what_is_compiled_is_queued_for_timing_while_another_run_waits(
    fleet: FleetRun, fleet_url: str
) -> None:
    runs = new_runs(2)
    first, second = runners_of(fleet, runs)
    with contextlib.closing(first), contextlib.closing(second), session(fleet_url) as connection:
        first.start(0, candidate(3), Effort())
        second.start(0, candidate(4), Effort())
        artifact = FakeTarget().compile(PROBLEMS[1], bind(candidate(4)))
        blob = packed(artifact)
        tables.put_blob(connection, hash_of(blob), blob)
        compiled = Outcome(Compiled(hash_of(blob), artifact.sha256, is_refused=False), 0.1)
        tables.tell(connection, (runs[1], 0, COMPILE), compiled, "a")
        tables.tell(connection, (runs[0], 0, COMPILE), FAILED, "a")
        first.finish()
        assert (0, EVALUATE) in under_way(connection, runs[1])


@pytest.mark.slow
def test_each_run_of_a_campaign_is_driven_by_one_process_until_the_last_bench_is_closed(
    fleet: FleetRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "TAKEN_LIMIT_S", 0.1)
    runs = new_runs(3)
    runners = runners_of(fleet, runs)
    for runner in runners[:2]:
        runner.close()
    with pytest.raises(UsageError, match="another process drives this run"):
        runners_of(fleet, runs[2:])
    runners[2].close()
    for runner in runners_of(fleet, runs):
        runner.close()


@pytest.mark.slow
def test_a_campaign_of_which_another_process_drives_a_run_is_refused_whole(
    fleet: FleetRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "TAKEN_LIMIT_S", 0.1)
    runs = new_runs(3)
    (taken,) = runners_of(fleet, runs[2:])
    with contextlib.closing(taken):
        with pytest.raises(UsageError, match="another process drives this run"):
            runners_of(fleet, runs)
        for runner in runners_of(fleet, runs[:2]):  # their locks ended with the connection
            runner.close()
