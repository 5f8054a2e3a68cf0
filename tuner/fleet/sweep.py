"""Looks after work that no node would finish: requeues the jobs of lost nodes, fails given-up jobs."""

from typing import TYPE_CHECKING, Final

from tuner.core.errors import Failure, Stage
from tuner.fleet import queues, tables
from tuner.fleet.work import Outcome

if TYPE_CHECKING:
    from tuner.fleet.server import Connection

LOCK: Final = 0x7377656570  # advisory lock: "sweep"
KEPT_DAYS: Final = 7  # of blobs, outcomes, and nodes that are gone
SWEEPER: Final = "sweep"  # in place of a node's name, in outcomes of jobs that were given up


def sweep(connection: "Connection", lease_s: float) -> int:
    """Requeues jobs of lost nodes, gives up jobs that failed too often; returns how many."""
    with connection.transaction():
        row = connection.execute("SELECT pg_try_advisory_xact_lock(%s)", (LOCK,)).fetchone()
        if row != (True,):
            return 0
        lost = queues.lost_jobs(connection, lease_s)
        for job in lost:
            if job.attempts + 1 < queues.ATTEMPTS:
                queues.give_back(connection, job)
                continue
            _give_up(connection, job, f"took {queues.ATTEMPTS} machines with it")
        failed = queues.given_up_jobs(connection)
        for job in failed:
            _give_up(connection, job, f"{job.attempts} nodes could not do it")
    return len(lost) + len(failed)


def _give_up(connection: "Connection", job: queues.Job, why: str) -> None:
    reason = f"{job.work.stage}: {why}"
    tables.store_outcome(connection, job.work.key, Outcome(Failure(Stage.RUN, reason), 0.0), SWEEPER)
    queues.delete(connection, job)


def delete_old(connection: "Connection") -> None:
    """Deletes blobs, outcomes, attempts and nodes older than 7 days (KEPT_DAYS), and jobs that have ended."""
    for statement in (
        "DELETE FROM fleet_blob WHERE stored < now() - make_interval(days => %s)",
        "DELETE FROM fleet_outcome WHERE told < now() - make_interval(days => %s)",
        "DELETE FROM fleet_work WHERE ended < now() - make_interval(days => %s)",
        "DELETE FROM fleet_node WHERE seen < now() - make_interval(days => %s)",
    ):
        connection.execute(statement, (KEPT_DAYS,))
    queues.delete_ended(connection)
