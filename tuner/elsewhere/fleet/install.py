"""Sets up a fleet in a database: the tuner's tables, the job queue's tables, and a role for nodes."""

import contextlib
import re
from typing import TYPE_CHECKING

from tuner.core.errors import UsageError
from tuner.elsewhere.fleet import queues
from tuner.elsewhere.fleet.queues import install_queue
from tuner.elsewhere.fleet.server import connected, plain_errors, server_of
from tuner.elsewhere.fleet.tables import FleetSettings, write_settings

if TYPE_CHECKING:
    from tuner.elsewhere.fleet.server import Connection
ROLE = re.compile(r"[a-z_][a-z0-9_]{0,62}")  # an identifier that needs no quotes
# What a node does with the tables of the fleet and of its queue; nodes have no rights on the history.
GRANTS = (
    ("SELECT", "fleet_setting"),
    ("SELECT, INSERT, UPDATE, DELETE", "fleet_node"),
    ("SELECT, INSERT", "fleet_outcome"),
    ("SELECT, INSERT", "fleet_blob"),
    ("SELECT, INSERT", "fleet_work"),
    *queues.GRANTS,
)


def install(url: str, settings: FleetSettings, role: str | None = None) -> None:
    """Creates or updates the tables of a fleet, stores its settings, and grants ``role`` the rights of nodes.

    ``role`` is created if missing; None: no grants. Raises UsageError for an unusable URL or role name, a
    missing package, and a role that may not be created; TunerError if the server refuses a statement.
    """
    from tuner.db.store import Store  # loads SQLAlchemy

    server_of(url)
    if role is not None and not ROLE.fullmatch(role):
        raise UsageError(f"role: found {role!r}, allowed letters, digits and _, such as fleet_worker")
    with contextlib.closing(connected(url)) as connection:
        Store.open(url).close()  # creates the tuner's tables
        install_queue(connection)
        with plain_errors():
            write_settings(connection, settings)
        if role is not None:
            _grant(connection, role)


def _grant(connection: "Connection", role: str) -> None:
    """Grants a role the rights of a node; creates the role, without a password, where it is missing."""
    from psycopg import sql

    name = sql.Identifier(role)
    with plain_errors(), connection.transaction():
        if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)).fetchone() is None:
            _create(connection, role)
        for rights, table in GRANTS:
            statement = sql.SQL("GRANT {} ON {} TO {}").format(sql.SQL(rights), sql.Identifier(table), name)
            connection.execute(statement)
        schema = connection.execute("SELECT current_schema()").fetchone()
        assert schema is not None
        where = sql.Identifier(str(schema[0]))
        connection.execute(sql.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(where, name))
        connection.execute(sql.SQL("GRANT USAGE ON ALL SEQUENCES IN SCHEMA {} TO {}").format(where, name))


def _create(connection: "Connection", role: str) -> None:
    from psycopg import errors, sql

    try:
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(role)))
    except errors.InsufficientPrivilege as error:
        mine = connection.info.user
        raise UsageError(
            f"role: found no {role} on the server, where {mine} may not make one; "
            f"its administrator types: createuser {role}"
        ) from error
