"""An open database: its SQLAlchemy engine, short transactions, errors as one line, and schema revision.

``bring_to_head`` creates the tables, or upgrades them to the newest revision; a ``Database`` gives
connections and sessions. ``plain_errors`` turns errors of the database into UsageErrors.
"""

import contextlib
import itertools
import json
import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Self, final
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DBAPIError, OperationalError, ProgrammingError
from sqlalchemy.orm import Session

from tuner.core.errors import UsageError
from tuner.core.passwords import without_secrets
from tuner.db.address import FileAddress, ServerAddress, parse_address
from tuner.db.models import Base

# SQLAlchemy engines for the addresses of databases, and database errors as messages of one line.

BUSY_LIMIT_S = 30.0  # how long a writer waits for another one
BEYOND_64_BITS = "a number does not fit 64 bits"
DAMAGED = "found a damaged database; restore a copy, or choose another file with --db"
QUOTED = 60  # characters of what was found damaged

# https://www.sqlite.org/rescode.html: extended codes begin with the name of their primary code
SQLITE_SENTENCES = (
    ("SQLITE_NOTADB", "is not a SQLite database"),
    ("SQLITE_CORRUPT", DAMAGED),
    ("SQLITE_FULL", "the disk is full; what was stored before is kept"),
    ("SQLITE_READONLY", "is read-only: it can be queried, not written"),
    ("SQLITE_CANTOPEN", "cannot be opened: the file must be readable, its directory writable"),
    ("SQLITE_BUSY", f"is locked by another process for more than {BUSY_LIMIT_S:.0f} s"),
    (
        "SQLITE_IOERR",
        "the disk refused to read or write (quota, size limit or defect); what was stored is kept",
    ),
)
# https://www.postgresql.org/docs/current/errcodes-appendix.html: classes, and single codes
POSTGRES_SENTENCES = (
    ("22003", BEYOND_64_BITS),
    ("53100", "the server's disk is full; what was stored before is kept"),
    ("25006", "is read-only: it can be queried, not written"),
    ("42501", "this user lacks a permission"),
    ("3D000", "does not exist on the server"),
    ("08", "the connection was lost"),
    ("28", "the server refused the user or password"),
    ("53", "the server is short of resources"),
    ("57", "the server stopped or cancelled the work"),
    ("58", "the server's system failed"),
)


@contextmanager
def plain_errors(shown: str, address: str = "") -> Iterator[None]:
    """Context manager: turns errors of the database into UsageErrors of one line; others pass unchanged.

    ``shown``: the address in messages; passwords of ``address``, the full URL, are masked in the messages.
    """
    try:
        yield
    except DBAPIError as error:
        sentence = _sentence(error)
        if sentence is None:
            raise
        raise UsageError(f"database {shown}: {without_secrets(sentence, address)}") from error
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"database {shown}: {DAMAGED}") from error
    except UnicodeEncodeError as error:
        raise UsageError(f"database {shown}: a text is not Unicode: {error.object[:QUOTED]!r}") from error
    except OverflowError as error:
        raise UsageError(f"database {shown}: {BEYOND_64_BITS}") from error


@contextmanager
def damaged_rows(shown: str) -> Iterator[None]:
    """Context manager: turns the exceptions of reading a damaged row into a UsageError.

    SQLite has no checksums, so a stored value may be anything. ``shown``: the address in messages.
    """
    try:
        yield
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        what = " ".join(str(error).split())[:QUOTED]
        raise UsageError(f"database {shown}: {DAMAGED} (a stored value: {what})") from error


def _sentence(error: DBAPIError) -> str | None:
    if isinstance(error.orig, sqlite3.Error):
        name = getattr(error.orig, "sqlite_errorname", "")  # "": raised by Python's module, not by SQLite
        is_no_text = not name and isinstance(error.orig, sqlite3.OperationalError)  # not UTF-8
        return DAMAGED if is_no_text else _matching(name, SQLITE_SENTENCES)
    state = getattr(error.orig, "sqlstate", None)
    if state is not None:
        return _matching(state, POSTGRES_SENTENCES)
    line = " ".join(str(error.orig).split())
    # libpq refuses an option of the address
    is_of_address = isinstance(error, ProgrammingError) and "connection" in line
    # no reply from a server: libpq's message is all there is
    if isinstance(error, OperationalError) or is_of_address:
        return line
    return None


def _matching(code: str, sentences: tuple[tuple[str, str], ...]) -> str | None:
    return next((sentence for prefix, sentence in sentences if code.startswith(prefix)), None)


CONNECT_LIMIT_S = 10  # for a server that does not answer
RETRY_PAUSE_S = 0.01
WRITES = "tuner_writes"  # execution option: the transaction will write


def open_engine(address: FileAddress | ServerAddress) -> Engine:
    """Returns a SQLAlchemy engine that connects on first use; raises UsageError if psycopg is missing."""
    if isinstance(address, FileAddress):
        return _file_engine(address.path)
    limits = {} if "connect_timeout" in address.url.query else {"connect_timeout": CONNECT_LIMIT_S}
    try:
        return sa.create_engine(address.url, connect_args=limits, pool_pre_ping=True)
    except ImportError as error:
        raise UsageError(
            f"database {address.shown}: PostgreSQL needs psycopg 3, found none; pip install 'psycopg[binary]'"
        ) from error


def empty_engine() -> Engine:
    """Returns a SQLAlchemy engine for a new, empty SQLite database in memory, which ends with the engine."""
    engine = sa.create_engine("sqlite://", creator=lambda: _connect(":memory:"), poolclass=sa.StaticPool)
    event.listen(engine, "begin", _begin)
    return engine


def prepare_file(address: FileAddress) -> None:
    """Creates the folders of a database file's path, not the file.

    Raises UsageError if they cannot be created, if an existing file is not a regular readable one, or if the
    directory of a missing file is read-only.
    """
    try:
        address.path.parent.mkdir(parents=True, exist_ok=True)
        exists = _is_there(address.path)
    except OSError as error:
        raise UsageError(f"database {address.shown}: cannot be created: {error.strerror}") from error
    if exists:
        require_file(address)
    elif not os.access(address.path.parent, os.W_OK):
        raise UsageError(f"database {address.shown}: its directory is read-only")


def _is_there(path: Path) -> bool:
    """Says whether a path exists; raises OSError, which ``Path.exists`` of Python 3.14 hides."""
    try:
        path.stat()
    except FileNotFoundError:
        return False
    return True


def require_file(address: FileAddress) -> None:
    """Raises UsageError unless the address names an existing, regular, readable file."""
    try:
        mode = address.path.stat().st_mode
    except OSError as error:
        raise UsageError(f"database {address.shown}: cannot be opened: {error.strerror}") from error
    if not stat.S_ISREG(mode):
        file_type = "a directory" if stat.S_ISDIR(mode) else "no regular file"
        raise UsageError(f"database {address.shown}: found {file_type}, allowed a file")
    if not os.access(address.path, os.R_OK):
        raise UsageError(f"database {address.shown}: the file may not be read")


def copy_pages(connection: Connection, file: Path, at_once: int = -1) -> None:
    """Copies a SQLite database to ``file``, ``at_once`` pages per step (-1: all pages in one step).

    Other processes may write between steps. Rolls back ``connection``'s transaction; replaces the content of
    ``file``.
    """
    with contextlib.closing(sqlite3.connect(file)) as copy:
        source = connection.connection.driver_connection
        assert isinstance(source, sqlite3.Connection)
        source.rollback()  # ends SQLAlchemy's transaction; SQLite's backup begins one itself
        source.backup(copy, pages=at_once)
        copy.execute("PRAGMA journal_mode = DELETE")  # so that the copy is one file


def _file_engine(path: Path) -> Engine:
    is_writable = os.access(path.parent, os.W_OK) and (not path.exists() or os.access(path, os.W_OK))

    def connect() -> sqlite3.Connection:
        return _connect_to_write(path) if is_writable else _connect_to_read(path)

    engine = sa.create_engine("sqlite://", creator=connect, poolclass=sa.QueuePool)
    event.listen(engine, "begin", _begin)
    return engine


def _connect_to_write(path: Path) -> sqlite3.Connection:
    connection = _connect(str(path))
    try:
        _enter_wal(connection)
        connection.execute("PRAGMA synchronous = NORMAL")  # WAL: a killed process loses nothing
        connection.execute("PRAGMA foreign_keys = ON")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _connect_to_read(path: Path) -> sqlite3.Connection:
    # WAL needs two more files, a log and its index, which SQLite creates if they are missing. Where they are
    # missing and it may not create them, no process writes: "immutable" reads without them.
    has_log = Path(f"{path}-wal").exists() or os.access(path.parent, os.W_OK)
    return _connect(f"file:{quote(str(path))}?{'mode=ro' if has_log else 'immutable=1'}", uri=True)


def _connect(database: str, uri: bool = False) -> sqlite3.Connection:
    return sqlite3.connect(
        database, timeout=BUSY_LIMIT_S, isolation_level=None, check_same_thread=False, uri=uri
    )


def _enter_wal(connection: sqlite3.Connection) -> None:
    give_up = time.monotonic() + BUSY_LIMIT_S  # SQLite does not wait when two processes switch a new file
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                raise
        time.sleep(RETRY_PAUSE_S)


def _begin(connection: Connection) -> None:
    # SQLite lets no reader become a writer after another process wrote: a writer takes the lock at once
    writes = connection.get_execution_options().get(WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


@final
class FileInPlace:
    """A check that an open SQLite file was neither deleted nor replaced, by its device and inode numbers."""

    def __init__(self, engine: Engine, path: Path, shown: str) -> None:
        self._engine = engine
        self._path = path
        self._shown = shown
        self._identity = _identity_of(path)

    def require(self) -> None:
        """Raises UsageError if the database file was deleted or replaced since it was opened.

        First copies the old file's content to ``NAME.rescue-1`` or the next free number, if it can. Call it
        while no connection is in use, as the pooled one has the old file open.
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
REVISIONS = ("0029", "0030")
BEFORE_RELEASE = tuple(f"{number:04}" for number in range(1, 29))  # no migration leads from them any more
# revision -> the last commit of the tuner that upgrades older databases to it
LAST_TO_UPGRADE = {"0026": "3304e7c", "0029": "431cb88"}
VERSION_TABLE = "alembic_version"
VERSION = sa.Table(  # as alembic makes it
    VERSION_TABLE,
    sa.MetaData(),
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
UPGRADE_LOCK = 0x74756E6572  # PostgreSQL advisory lock: "tuner"


def bring_to_head(engine: Engine, shown: str) -> None:
    """Creates the tables of an empty database, or upgrades those of an older one, in one transaction.

    ``shown``: the address in messages. Raises UsageError for tables of another program, and for a revision
    that is unknown, newer, or older than the first release.
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
    """Returns the revision of a database's schema, such as "0029"; None if none is stored."""
    if not sa.inspect(connection).has_table(VERSION_TABLE):
        return None
    return ", ".join(connection.execute(sa.select(VERSION.c.version_num)).scalars()) or None


def create(connection: Connection) -> None:
    """Creates the tables of an empty database from the models; faster than running the migrations."""
    Base.metadata.create_all(connection)
    VERSION.create(connection, checkfirst=True)
    connection.execute(sa.insert(VERSION), {"version_num": REVISIONS[-1]})


def upgrade(connection: Connection) -> None:
    """Runs the Alembic migrations that the database lacks, within the caller's transaction."""
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
        commits = (commit for newer, commit in LAST_TO_UPGRADE.items() if revision < newer)
        raise UsageError(
            f"database {shown}: found revision {revision}, allowed {REVISIONS[0]} or newer: "
            f"to upgrade it, open it once with the tuner of commit {', then of '.join(commits)}"
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
        """Creates or upgrades the tables to the head revision.

        ``shown``: the URL for people, without password; ``file``: that of a SQLite database.
        """
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
        """Context manager: gives a SQLAlchemy session for queries, which see one state of the database."""
        with damaged_rows(self.shown), self._plain_errors(), Session(self._reader) as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """Context manager: gives a SQLAlchemy session, which is committed at the end of the block.

        An exception rolls it back. Raises UsageError at the end if the SQLite file was deleted or replaced.
        """
        with self._plain_errors(), Session(self._writer) as session, session.begin():
            yield session
        self._require_file()

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Context manager: gives a connection for SQL statements, which is committed at the end of the block.

        An exception rolls it back. Raises UsageError at the end if the SQLite file was deleted or replaced.
        """
        with self._plain_errors(), self._writer.begin() as connection:
            yield connection
        self._require_file()

    @contextmanager
    def connected(self) -> Iterator[Connection]:
        """Context manager: gives a connection for SQL queries; nothing is committed."""
        with self._plain_errors(), self._engine.connect() as connection:
            yield connection

    def close(self) -> None:
        self._engine.dispose()

    def _plain_errors(self) -> AbstractContextManager[None]:
        return plain_errors(self.shown, self._address)

    def _require_file(self) -> None:
        if self._file is not None:
            self._file.require()
