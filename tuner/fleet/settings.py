"""Settings that all drivers and nodes of a fleet share, stored in the fleet's database."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tuner.core.errors import UsageError

if TYPE_CHECKING:
    from tuner.fleet.server import Connection

LEASE_S: Final = 30.0  # a node without a heartbeat for so long loses its work
BEATS: Final = 3  # heartbeats within a lease
LEAST_LEASE_S: Final = 1.0
NAME: Final = "lease_s"


@dataclass(frozen=True)
class FleetSettings:
    """The settings that all drivers and nodes of a fleet share: ``lease_s``.

    A node without a heartbeat for that many seconds counts as lost, and its work is given to other nodes.
    """

    lease_s: float = LEASE_S

    def __post_init__(self) -> None:
        """Raises UsageError for a lease that is too short for heartbeats."""
        if not self.lease_s >= LEAST_LEASE_S:
            raise UsageError(f"lease: found {self.lease_s:g} s, allowed {LEAST_LEASE_S:g} s or more")

    @property
    def beat_s(self) -> float:
        """Returns the seconds between two heartbeats of a node: a third of the lease."""
        return self.lease_s / BEATS


def write_settings(connection: "Connection", settings: FleetSettings) -> None:
    """Stores the settings of a fleet in its database, in place of earlier settings.

    Running nodes and drivers keep the settings that they have read.
    """
    connection.execute(
        "INSERT INTO fleet_setting (name, value) VALUES (%s, %s) "
        "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (NAME, repr(settings.lease_s)),
    )


def read_settings(connection: "Connection") -> FleetSettings:
    """Returns the settings of the fleet in a database. Raises UsageError for a database without a fleet."""
    import psycopg

    try:
        found = connection.execute("SELECT value FROM fleet_setting WHERE name = %s", (NAME,)).fetchone()
    except psycopg.errors.UndefinedTable:
        found = None
    if found is None:
        raise UsageError("this database has no fleet", "tuner fleet up")
    return FleetSettings(float(str(found[0])))
