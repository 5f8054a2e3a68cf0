"""An open database: its connection, the revision of its schema, and its transactions."""

import contextlib
import itertools
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Self, final

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.orm import Session

from tuner.core.errors import UsageError
from tuner.db.address import FileAddress, parse_address
from tuner.db.engine import (
    WRITES,
    copy_pages,
    damaged_rows,
    empty_engine,
    open_engine,
    plain_errors,
    prepare_file,
    require_file,
)
from tuner.db.models import Base


@final
class FileInPlace:
    """A check that an open SQLite file was neither deleted nor replaced, by its device and inode numbers."""

    def __init__(self, engine: Engine, path: Path, shown: str) -> None:
        self._engine = engine
        self._path = path
        self._shown = shown
        self._identity = _identity_of(path)

    def require(self) -> None:
        """Raises UsageError where the database file was deleted or replaced since it was opened.

        Before that, copies the old file to ``NAME.rescue-1`` or the next free number. To be called while no
        connection is in use: the pooled one has the old file open.
        """
        if _identity_of(self._path) == self._identity:
            return
        try:
            file = self._new_file()
            with self._engine.connect() as connection:
                copy_pages(connection, file)  # of the old file, which exists as long as it is open
            rescued = f"what was stored is in {file}"
        except (OSError, sqlite3.Error) as error:
            rescued = f"what was stored could not be rescued: {error}"
        raise UsageError(f"database {self._shown}: its file was deleted or replaced; {rescued}")

    def _new_file(self) -> Path:
        for number in itertools.count(1):
            file = self._path.with_name(f"{self._path.name}.rescue-{number}")
            with contextlib.suppress(FileExistsError):
                os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
                return file
        raise AssertionError("unreachable: some number is free")


def _identity_of(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


MIGRATIONS = files("tuner.db") / "migrations"
# of migrations/versions, oldest first: listed here, since alembic is imported only to upgrade
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
    """Creates the tables of an empty database, or upgrades the tables of an older one, in one transaction."""
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
    """Creates the tables of an empty database from the models: faster than running the migrations."""
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


@final
class Database:
    """An open results database, a SQLite file or a PostgreSQL server, and its short transactions.

    Every method raises UsageError when the file or server fails: full disk, lock, damage, lost connection.
    """

    def __init__(self, engine: Engine, shown: str, file: Path | None = None) -> None:
        """Upgrades the database to the head revision. ``file`` is the file of a SQLite database."""
        self.shown = shown  # URL for people, password hidden
        self._engine = engine
        self._address = engine.url.render_as_string(hide_password=False)
        self._writer = engine.execution_options(**{WRITES: True})
        # a reading transaction of SQLite always sees one state
        is_server = engine.dialect.name == "postgresql"
        self._reader = engine.execution_options(isolation_level="REPEATABLE READ") if is_server else engine
        try:
            with self._plain_errors():
                bring_to_head(engine, shown)
            self._file = None if file is None else FileInPlace(engine, file, shown)
        except BaseException:
            self.close()
            raise

    @classmethod
    def open(cls, url: str) -> Self:
        """Opens the database at a path or URL; creates a missing SQLite file and upgrades an older schema."""
        return cls._opened(url, prepare_file)

    @classmethod
    def open_existing(cls, url: str) -> Self:
        """Opens the database at a path or URL and upgrades an older schema; creates no file."""
        return cls._opened(url, require_file)

    @classmethod
    def _opened(cls, url: str, look_at: Callable[[FileAddress], None]) -> Self:
        address = parse_address(url)
        if not isinstance(address, FileAddress):
            return cls(open_engine(address), address.shown)
        look_at(address)
        return cls(open_engine(address), address.shown, address.path)

    @classmethod
    def empty(cls, url: str) -> Self:
        """Returns an empty database in memory; messages print ``url``, a file that does not exist yet."""
        return cls(empty_engine(), parse_address(url).shown)

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Opens a session of SQLAlchemy for a ``with`` block; its queries see one state of the database."""
        with damaged_rows(self.shown), self._plain_errors(), Session(self._reader) as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """Opens a session of SQLAlchemy for a ``with`` block; it is committed at the end of the block.

        Rolls back on an exception. Afterwards UsageError where the SQLite file was deleted or replaced.
        """
        with self._plain_errors(), Session(self._writer) as session, session.begin():
            yield session
        self._require_file()

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Opens a connection for SQL statements in a ``with`` block; it is committed as by ``writing``."""
        with self._plain_errors(), self._writer.begin() as connection:
            yield connection
        self._require_file()

    @contextmanager
    def connected(self) -> Iterator[Connection]:
        """Opens a connection for SQL queries in a ``with`` block; nothing is committed."""
        with self._plain_errors(), self._engine.connect() as connection:
            yield connection

    def close(self) -> None:
        self._engine.dispose()

    def _plain_errors(self) -> AbstractContextManager[None]:
        return plain_errors(self.shown, self._address)

    def _require_file(self) -> None:
        if self._file is not None:
            self._file.require()
