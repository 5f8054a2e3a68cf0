"""The queue engine: Procrastinate, whose jobs are rows of the history's database. No other file knows it.

A queue is served by nodes that are equal for its jobs. A job is named by its work's key and carries JSON.
"""

from typing import TYPE_CHECKING

from tuner.fleet.server import told_plainly

if TYPE_CHECKING:
    from tuner.fleet.server import Connection

TABLES = ("procrastinate_jobs", "procrastinate_workers", "procrastinate_events")
INSTALL_LOCK = 0x666C656574  # advisory lock: "fleet"


def install_engine(connection: "Connection") -> None:
    """Makes the engine's tables and functions where they are missing."""
    from procrastinate.schema import SchemaManager

    with told_plainly(), connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (INSTALL_LOCK,))
        found = connection.execute("SELECT to_regclass(%s)", (TABLES[0],)).fetchone()
        if found == (None,):
            connection.execute(SchemaManager.get_schema())
