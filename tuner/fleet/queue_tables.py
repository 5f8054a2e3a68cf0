"""What is asked of Procrastinate's tables themselves, since no call of it does: docs/decisions/0048."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tuner.fleet.server import Connection

# What its functions, which run with the rights of who calls them, do for a node.
GRANTS: Final = (
    ("SELECT, INSERT, UPDATE, DELETE", "procrastinate_jobs"),
    ("SELECT, INSERT, UPDATE, DELETE", "procrastinate_workers"),
    ("SELECT, INSERT, UPDATE, DELETE", "procrastinate_events"),
    ("SELECT, UPDATE", "procrastinate_periodic_defers"),  # a trigger updates it where a job is deleted
)


def seconds_since_start(connection: "Connection", jobs: list[int]) -> dict[int, float]:
    """Returns how long ago each of some jobs was begun, the last time."""
    rows = connection.execute(
        "SELECT job_id, extract(epoch FROM now() - max(at))::float8 FROM procrastinate_events "
        "WHERE type = 'started' AND job_id = ANY(%s) GROUP BY job_id",
        (jobs,),
    )
    return {int(job): float(seconds) for job, seconds in rows}
