"""Status read from the tables of a real server; nodes and jobs as they would have written them."""

import datetime
from typing import Any

import pytest

from tests.elsewhere.fleet.values import COMPILER_BUILD, Connection, defer, node, outcomes, take_job, work
from tuner.core.errors import Failure, Stage
from tuner.core.requests import FleetRequest
from tuner.elsewhere.fleet import driver, tables
from tuner.elsewhere.fleet.node_children import now
from tuner.elsewhere.fleet.queues import KEPT_DAYS, LOCK, delete_old, sweep
from tuner.elsewhere.fleet.server import session
from tuner.elsewhere.fleet.status import fleet_status
from tuner.elsewhere.fleet.tables import Execution, Interval
from tuner.elsewhere.fleet.work import EVALUATE, compile_queue, measure_queue

pytestmark = pytest.mark.postgres
LEASE_S = 30.0
DEVICE, MACHINE = "here fake", "fake"


def joined(connection: Connection, name: str, silent_s: float = 0.0, **changes: Any) -> None:
    tables.store_node(connection, node(name, **changes))
    connection.execute(
        "UPDATE fleet_node SET seen = now() - make_interval(secs => %s), "
        "started = now() - make_interval(secs => 3600) WHERE name = %s",
        (silent_s, name),
    )


def compile_job(connection: Connection, run: str, number: int = 0) -> None:
    defer(connection, work(run, number), compile_queue(COMPILER_BUILD))


def why(connection: Connection) -> str:
    (queue,) = fleet_status(connection, LEASE_S).queues
    return queue.why


def test_a_fleet_without_work_waits_for_nothing(connection: Connection) -> None:
    joined(connection, "a", silent_s=3.0)
    status = fleet_status(connection, LEASE_S)
    (seen,), (device,) = status.nodes, status.devices
    assert (status.queues, status.state_of(seen)) == ((), "works")
    assert (device.device, device.idle_share, device.doing) == (DEVICE, 1.0, None)


def test_a_job_that_no_node_can_do_says_which_nodes_there_are(connection: Connection, run: str) -> None:
    joined(connection, "a", device="there fake")
    defer(connection, work(run, stage=EVALUATE), measure_queue("fake", DEVICE), alone=True)
    assert why(connection) == f"no node measures on the job's device of fake; found there fake of {MACHINE}"
    connection.execute("DELETE FROM procrastinate_jobs")
    joined(connection, "a", compiler_build="tuner 1, fake 2.0")
    joined(connection, "gone", silent_s=LEASE_S + 1)
    joined(connection, "other", target="cpu", compiler_build="tuner 1, other")
    compile_job(connection, run)
    assert why(connection) == f"no node compiles fake as {COMPILER_BUILD}; found tuner 1, fake 2.0"


def test_a_job_after_others_says_who_is_busy(connection: Connection, run: str) -> None:
    joined(connection, "a", slots=1)
    for number in range(2):
        compile_job(connection, run, number)
    assert why(connection) == "a node is about to take it"
    take_job(connection)
    (queue,) = fleet_status(connection, LEASE_S).queues
    assert (queue.stage, queue.waits, queue.doing, queue.runs) == ("compile", 1, 1, (run,))
    assert queue.why == "a: busy with 1 of 1 at once"


def test_a_silent_node_and_one_that_drains_are_named(connection: Connection, run: str) -> None:
    with connection.transaction():  # in which PostgreSQL's clock stands
        joined(connection, "a", silent_s=25.0)
        compile_job(connection, run)
        assert why(connection) == "a: silent; its work is given to another in 5 s"
    joined(connection, "a")
    tables.drain(connection, "a")
    assert why(connection) == "a: asked to end after its current work"
    for state in ("drains", "lost"):
        status = fleet_status(connection, LEASE_S)
        assert status.state_of(status.nodes[0]) == state
        joined(connection, "a", silent_s=LEASE_S)


def test_the_idle_share_is_of_the_last_minute(connection: Connection, run: str) -> None:
    connection.execute("DELETE FROM fleet_work")
    joined(connection, "a")
    ended = now()
    for began_s, ended_s in ((80, 70), (70, 45), (20, 5)):  # before, half within, within the window
        whole = Interval(*(ended - datetime.timedelta(seconds=ago_s) for ago_s in (began_s, ended_s)))
        tables.store_execution(connection, work(run, stage=EVALUATE), Execution("a", DEVICE, whole))
    (device,) = fleet_status(connection, LEASE_S).devices
    assert device.idle_share == pytest.approx(0.5, abs=0.1)
    assert device.machine == MACHINE


def test_what_a_device_is_doing_is_reported(connection: Connection, run: str) -> None:
    joined(connection, "a")
    defer(connection, work(run, 7, EVALUATE, machine=MACHINE), measure_queue(MACHINE, DEVICE), alone=True)
    take_job(connection)
    status = fleet_status(connection, LEASE_S)
    (device,) = status.devices
    assert device.doing is not None
    assert (device.doing.number, device.doing.run) == (7, run)
    assert status.run_text(run) == f"run {run[:8]}"


def test_nodes_that_were_all_silent_get_the_time_to_send_a_heartbeat(
    shared_url: str, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a machine was suspended together with its nodes."""
    slept: list[float] = []

    def beat(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 2:
            connection.execute("UPDATE fleet_node SET seen = now() WHERE name = 'a'")

    monkeypatch.setattr("tuner.elsewhere.fleet.driver.time.sleep", beat)
    joined(connection, "a", silent_s=LEASE_S)
    joined(connection, "b", silent_s=LEASE_S)
    assert [each.name for each in driver.alive_nodes(FleetRequest(shared_url))] == ["a"]
    assert len(slept) == 2
    connection.execute("DELETE FROM fleet_node")
    assert driver.alive_nodes(FleetRequest(shared_url)) == ()
    assert len(slept) == 2  # where no node is known, none is waited for


# What silent nodes leave is swept.


def taken_by_a_node(connection: Connection, run: str, silent_s: float, attempts: int = 0) -> None:
    defer(connection, work(run))
    (worker,) = connection.execute(
        "INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now() - make_interval(secs => %s)) "
        "RETURNING id",
        (silent_s,),
    )
    take_job(connection, *worker)
    connection.execute("UPDATE procrastinate_jobs SET attempts = %s", (attempts,))


def job_status(connection: Connection) -> object:
    return connection.execute("SELECT status::text, attempts FROM procrastinate_jobs").fetchone()


def test_what_a_silent_node_held_is_given_back(connection: Connection, run: str) -> None:
    taken_by_a_node(connection, run, silent_s=2.0)
    assert (sweep(connection, lease_s=30.0), job_status(connection)) == (0, ("doing", 0))
    connection.execute("DELETE FROM procrastinate_jobs")
    taken_by_a_node(connection, run, silent_s=31.0)
    assert (sweep(connection, lease_s=30.0), job_status(connection)) == (1, ("todo", 1))
    assert outcomes(connection, run) == {}


def test_what_took_three_machines_with_it_is_a_failure(connection: Connection, run: str) -> None:
    taken_by_a_node(connection, run, silent_s=31.0, attempts=2)
    assert (sweep(connection, lease_s=30.0), job_status(connection)) == (1, None)
    outcome = outcomes(connection, run)[0, "compile"]
    assert outcome.value == Failure(Stage.RUN, "compile: took 3 machines with it")
    other = f"{run[:-4]}ffff"
    taken_by_a_node(connection, other, silent_s=0.0)
    connection.execute("UPDATE procrastinate_jobs SET status = 'failed', attempts = 3")
    assert sweep(connection, lease_s=30.0) == 1
    outcome = outcomes(connection, other)[0, "compile"]
    assert outcome.value == Failure(Stage.RUN, "compile: 3 nodes could not do it")


def test_one_sweeps_at_a_time_and_old_ones_go(connection: Connection, shared_url: str, run: str) -> None:
    taken_by_a_node(connection, run, silent_s=31.0)
    with session(shared_url) as other, other.transaction():
        other.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
        assert sweep(connection, lease_s=30.0) == 0
    assert sweep(connection, lease_s=30.0) == 1
    tables.store_blob(connection, run, b"old")
    tables.store_blob(connection, f"{run} new", b"new")
    connection.execute(
        "UPDATE fleet_blob SET stored = stored - make_interval(days => %s) WHERE sha256 = %s",
        (KEPT_DAYS + 1, run),
    )
    delete_old(connection)
    found = connection.execute("SELECT sha256 FROM fleet_blob WHERE sha256 LIKE %s", (f"{run}%",))
    assert found.fetchall() == [(f"{run} new",)]
