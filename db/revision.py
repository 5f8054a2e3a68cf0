"""The revision of the stored schema, and its upgrade to ours."""

from importlib.resources import files

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from tuner.db.opening import WRITES
from tuner.errors import UsageError

# db/migrations/versions, oldest first; alembic itself is loaded only to upgrade
REVISIONS = ("0001", "0002", "0003", "0004", "0005")
VERSION_TABLE = "alembic_version"
UPGRADE_LOCK = 0x74756E6572  # PostgreSQL advisory lock: "tuner"


def bring_to_head(engine: Engine, shown: str) -> None:
    """Upgrades an older or empty database in one transaction. Raises UsageError for one not ours."""
    with engine.connect() as connection:
        if _revision_to_upgrade(connection, shown) == REVISIONS[-1]:
            return
    with engine.connect().execution_options(**{WRITES: True}) as connection, connection.begin():
        if connection.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(UPGRADE_LOCK)))
        # another process may have upgraded it since
        if _revision_to_upgrade(connection, shown) != REVISIONS[-1]:
            upgrade(connection)


def stored_revision(connection: Connection) -> str | None:
    """Returns what the database says; None for one that alembic never touched."""
    if not sa.inspect(connection).has_table(VERSION_TABLE):
        return None
    version = sa.select(sa.column("version_num", sa.Text)).select_from(sa.table(VERSION_TABLE))
    return ", ".join(connection.execute(version).scalars()) or None


def upgrade(connection: Connection) -> None:
    """Runs the migrations that the database lacks inside the caller's transaction."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(files("tuner.db") / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _revision_to_upgrade(connection: Connection, shown: str) -> str | None:
    revision = stored_revision(connection)
    if revision is None and set(sa.inspect(connection).get_table_names()) - {VERSION_TABLE}:
        raise UsageError(
            f"database {shown}: found tables of another program, allowed ours or an empty database"
        )
    if revision is not None and revision not in REVISIONS:
        raise UsageError(
            f"database {shown}: found revision {revision}, allowed up to {REVISIONS[-1]}: "
            "a newer tuner or another program made it"
        )
    return revision
