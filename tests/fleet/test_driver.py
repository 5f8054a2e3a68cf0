"""A driver against a real server; what nodes would do is done by hand."""

import contextlib
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.fleet.conftest import LEASE_S
from tests.fleet.values import COMPILER_BUILD, FAILED, under_way, work
from tuner.core.errors import TunerError, UsageError
from tuner.core.requests import FleetRequest
from tuner.fleet import driver as driver_connection
from tuner.fleet import queues, tables
from tuner.fleet.driver import Driver, DriverConnection
from tuner.fleet.work import BASELINE, compile_queue

if TYPE_CHECKING:
    from tuner.fleet.server import Connection

pytestmark = pytest.mark.postgres


@pytest.fixture
def driver(connection: "Connection", shared_url: str, run: str) -> Iterator[Driver]:
    assert under_way(connection, run) == set()
    with contextlib.closing(Driver(FleetRequest(shared_url), run, ("device",))) as made:
        yield made


def test_what_is_known_or_under_way_is_not_queued_again(
    connection: "Connection", shared_url: str, driver: Driver, run: str
) -> None:
    tables.tell(connection, work(run, 1).key, FAILED, "node")
    driver.begin(work(run, 0))
    driver.close()
    with contextlib.closing(Driver(FleetRequest(shared_url), run, ("device",))) as successor:
        for number in range(3):
            successor.begin(work(run, number))
        assert successor.known == {(1, "compile"): FAILED}
    assert under_way(connection, run) == {(0, "compile"), (2, "compile")}


def test_a_job_that_ends_after_its_outcome_was_taken_is_none_that_was_cancelled(
    connection: "Connection", driver: Driver, run: str
) -> None:
    asked = driver.ask(work(run, stage=BASELINE))
    tables.tell(connection, asked.key, FAILED, "node")
    assert driver.selected(asked) == FAILED
    tables.wake(connection, run)
    driver.wait()  # while the node has not said yet that the job is over
    connection.execute("DELETE FROM procrastinate_jobs")
    tables.wake(connection, run)
    driver.wait()


def test_a_run_that_waits_for_long_says_why_once_a_lease(
    connection: "Connection", shared_url: str, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_connection, "LISTEN_S", 0.01)
    given: list[str] = []
    line = DriverConnection(shared_url)
    driver = Driver(FleetRequest(shared_url), run, ("device",), given.append, shared=line)
    with contextlib.closing(driver) as waiting:
        waiting.begin(work(run))
        waiting.begin(work(run, 1))
        waiting.wait()
        assert given == []
        monkeypatch.setattr(line, "_heard_s", time.monotonic() - LEASE_S)
        for _ in range(3):
            waiting.wait()
        assert given == [f"no node compiles fake as {COMPILER_BUILD}; found none"]
        monkeypatch.setattr(line, "_heard_s", time.monotonic() - LEASE_S)
        tables.tell(connection, work(run).key, FAILED, "node")
        waiting.wait()
        assert len(given) == 1


def test_jobs_that_are_taken_back_end_the_run(connection: "Connection", driver: Driver, run: str) -> None:
    driver.begin(work(run))
    assert queues.cancel_run(connection, run) == 1
    tables.wake(connection, run)
    with pytest.raises(TunerError, match="the jobs of the run were cancelled; go on with it by --resume"):
        driver.wait()


def test_a_run_has_one_driver(
    driver: Driver, shared_url: str, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.begin(work(run))
    monkeypatch.setattr(driver_connection, "TAKEN_LIMIT_S", 0.1)
    with pytest.raises(UsageError, match="another process drives this run"):
        Driver(FleetRequest(shared_url), run, ("device",))


def test_what_a_whole_run_waits_for_goes_before_trials_of_others(
    connection: "Connection", driver: Driver, run: str
) -> None:
    driver.begin(work(run))
    driver.ask(work(run))
    (found,) = queues.waiting(connection)
    assert found.queue == compile_queue(work(run).compiler_build)
    assert (found.todo, found.example.number < 0) == (2, True)
