"""Queries of Procrastinate's tables for which it has no call: docs/decisions/0048."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tuner.fleet.server import Connection

# Rights that Procrastinate's functions need, which run with the rights of their caller, for a node.
GRANTS: Final = (
    ("SELECT, INSERT, UPDATE, DELETE", "procrastinate_jobs"),
    ("SELECT, INSERT, UPDATE, DELETE", "procrastinate_workers"),
    ("SELECT, INSERT, UPDATE, DELETE", "procrastinate_events"),
    ("SELECT, UPDATE", "procrastinate_periodic_defers"),  # updated by a trigger on deleted jobs
)


def seconds_since_start(connection: "Connection", jobs: list[int]) -> dict[int, float]:
    """Returns, by job id, how many seconds ago the latest attempt at the job began.

    Jobs that no node has begun are left out.
    """
    rows = connection.execute(
        "SELECT job_id, extract(epoch FROM now() - max(at))::float8 FROM procrastinate_events "
        "WHERE type = 'started' AND job_id = ANY(%s) GROUP BY job_id",
        (jobs,),
    )
    return {int(job): float(seconds) for job, seconds in rows}
