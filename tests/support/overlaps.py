"""Checks in the database that no timing overlapped with other work on the same device."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tuner.elsewhere.fleet.server import Connection


def overlaps(connection: "Connection", run: str) -> tuple[tuple[str, int, int], ...]:
    """Returns (device, trial, trial) for timings that overlapped, at least one of them of the run."""
    rows = connection.execute(
        "SELECT one.device, one.number, other.number FROM fleet_work AS one JOIN fleet_work AS other "
        "ON one.device = other.device AND one.id < other.id "
        "AND one.timed_from < other.timed_until AND other.timed_from < one.timed_until "
        "WHERE %(run)s IN (one.run, other.run) ORDER BY one.id, other.id",
        {"run": run},
    )
    return tuple((device, first, second) for device, first, second in rows)


def repeated(connection: "Connection", run: str) -> int:
    """Returns how many pieces of work of a run were done more than once."""
    row = connection.execute(
        "SELECT count(*) FROM (SELECT 1 FROM fleet_work WHERE run = %s AND number >= 0 "
        "GROUP BY number, stage HAVING count(*) > 1) AS done_again",
        (run,),
    ).fetchone()
    return int(row[0]) if row else 0
