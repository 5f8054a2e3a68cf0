from typing import TYPE_CHECKING

import pytest

from tests.fleet.values import outcomes, take_job, work
from tuner.core.errors import Failure, Stage
from tuner.fleet import queues, tables
from tuner.fleet.server import session
from tuner.fleet.status import KEPT_DAYS, LOCK, delete_old, sweep

if TYPE_CHECKING:
    from tuner.fleet.server import Connection

pytestmark = pytest.mark.postgres


def taken_by_a_node(connection: "Connection", run: str, silent_s: float, attempts: int = 0) -> None:
    """Queues a piece of work that a node has begun, which then said nothing."""
    queues.defer(connection, "compile:a", work(run), 0, alone=False)
    (worker,) = connection.execute(
        "INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now() - make_interval(secs => %s)) "
        "RETURNING id",
        (silent_s,),
    )
    take_job(connection, *worker)
    connection.execute("UPDATE procrastinate_jobs SET attempts = %s", (attempts,))


def status(connection: "Connection") -> object:
    return connection.execute("SELECT status::text, attempts FROM procrastinate_jobs").fetchone()


def test_a_node_that_beats_keeps_its_work(connection: "Connection", run: str) -> None:
    taken_by_a_node(connection, run, silent_s=2.0)
    assert sweep(connection, lease_s=30.0) == 0
    assert status(connection) == ("doing", 0)


def test_what_a_silent_node_held_is_given_back(connection: "Connection", run: str) -> None:
    taken_by_a_node(connection, run, silent_s=31.0)
    assert sweep(connection, lease_s=30.0) == 1
    assert status(connection) == ("todo", 1)
    assert outcomes(connection, run) == {}


def test_what_took_three_machines_with_it_is_a_failure(connection: "Connection", run: str) -> None:
    taken_by_a_node(connection, run, silent_s=31.0, attempts=2)
    assert sweep(connection, lease_s=30.0) == 1
    assert status(connection) is None
    outcome = outcomes(connection, run)[0, "compile"]
    assert outcome.value == Failure(Stage.RUN, "compile: took 3 machines with it")


def test_what_nodes_gave_up_is_reported(connection: "Connection", run: str) -> None:
    taken_by_a_node(connection, run, silent_s=0.0)
    connection.execute("UPDATE procrastinate_jobs SET status = 'failed', attempts = 3")
    assert sweep(connection, lease_s=30.0) == 1
    outcome = outcomes(connection, run)[0, "compile"]
    assert outcome.value == Failure(Stage.RUN, "compile: 3 nodes could not do it")


def test_one_sweeps_at_a_time(connection: "Connection", shared_url: str, run: str) -> None:
    taken_by_a_node(connection, run, silent_s=31.0)
    with session(shared_url) as other, other.transaction():
        other.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
        assert sweep(connection, lease_s=30.0) == 0
    assert sweep(connection, lease_s=30.0) == 1


def test_what_is_old_is_deleted(connection: "Connection", run: str) -> None:
    tables.put_blob(connection, run, b"old")
    tables.put_blob(connection, f"{run} new", b"new")
    connection.execute(
        "UPDATE fleet_blob SET stored = stored - make_interval(days => %s) WHERE sha256 = %s",
        (KEPT_DAYS + 1, run),
    )
    delete_old(connection)
    found = connection.execute("SELECT sha256 FROM fleet_blob WHERE sha256 LIKE %s", (f"{run}%",))
    assert found.fetchall() == [(f"{run} new",)]
