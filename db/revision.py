"""The revision of the stored schema, and its upgrade to the revision of this version."""

from importlib.resources import files

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from tuner.core.errors import UsageError
from tuner.db.models import Base
from tuner.db.opening import WRITES

MIGRATIONS = files("tuner.db") / "migrations"
# of its versions, oldest first; alembic is imported only to upgrade
REVISIONS = ("0015", "0016", "0017", "0018", "0019", "0020", "0021", "0022", "0023", "0024", "0025")
BEFORE_RELEASE = tuple(f"{number:04}" for number in range(1, 15))  # no migration leads from them any more
LAST_TO_UPGRADE = "2ce3d7c"  # commit of the tuner that upgrades them
VERSION_TABLE = "alembic_version"
VERSION = sa.Table(  # as alembic makes it
    VERSION_TABLE,
    sa.MetaData(),
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
UPGRADE_LOCK = 0x74756E6572  # PostgreSQL advisory lock: "tuner"


def bring_to_head(engine: Engine, shown: str) -> None:
    """Creates the tables of an empty database, or upgrades the tables of an older one, in one transaction.

    ``shown`` is the database's address for messages. Raises UsageError for a database of another program, and
    for a schema revision that cannot be upgraded.
    """
    with engine.connect() as connection:
        if _revision_to_upgrade(connection, shown) == REVISIONS[-1]:
            return
    with engine.connect().execution_options(**{WRITES: True}) as connection, connection.begin():
        if connection.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(UPGRADE_LOCK)))
        stored = _revision_to_upgrade(connection, shown)  # another process may have upgraded it since
        if stored is None:
            create(connection)
        elif stored != REVISIONS[-1]:
            upgrade(connection)


def stored_revision(connection: Connection) -> str | None:
    """Returns the revision of a database's schema, such as "0016"; None for a database without one."""
    if not sa.inspect(connection).has_table(VERSION_TABLE):
        return None
    return ", ".join(connection.execute(sa.select(VERSION.c.version_num)).scalars()) or None


def create(connection: Connection) -> None:
    """Creates the tables of an empty database from the models and stores the newest revision.

    This is faster than running the migrations.
    """
    Base.metadata.create_all(connection)
    VERSION.create(connection, checkfirst=True)
    connection.execute(sa.insert(VERSION), {"version_num": REVISIONS[-1]})


def upgrade(connection: Connection) -> None:
    """Runs the migrations of Alembic that the database lacks, within the caller's transaction."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _revision_to_upgrade(connection: Connection, shown: str) -> str | None:
    # read before the revision: another process may be creating both
    tables = set(sa.inspect(connection).get_table_names())
    revision = stored_revision(connection)
    if revision is None and tables - {VERSION_TABLE}:
        raise UsageError(f"database {shown}: has tables of another program", "choose another file with --db")
    if revision in BEFORE_RELEASE:
        raise UsageError(
            f"database {shown}: found revision {revision}, allowed {REVISIONS[0]} or newer: "
            f"to upgrade it, open it once with the tuner of commit {LAST_TO_UPGRADE}"
        )
    if revision is not None and revision not in REVISIONS:
        raise UsageError(
            f"database {shown}: found revision {revision}, allowed up to {REVISIONS[-1]}: "
            "a newer tuner or another program made it"
        )
    return revision
