"""SQLAlchemy engines for the addresses of databases, and database errors as messages of one line."""

import contextlib
import json
import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DBAPIError, OperationalError, ProgrammingError

from tuner.core.errors import UsageError
from tuner.core.serialization import without_secrets
from tuner.db.address import FileAddress, ServerAddress

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
    """Turns database errors in a ``with`` block into UsageErrors of one line; other errors pass unchanged.

    ``shown`` is the address in messages; passwords of ``address``, the full URL, are masked in texts.
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
        raise UsageError(f"database {shown}: a text is no Unicode: {error.object[:QUOTED]!r}") from error
    except OverflowError as error:
        raise UsageError(f"database {shown}: {BEYOND_64_BITS}") from error


@contextmanager
def damaged_rows(shown: str) -> Iterator[None]:
    """Turns what reading a damaged row raises (SQLite keeps no checksums) into a UsageError."""
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
    """Returns an engine of SQLAlchemy on an empty SQLite database in memory; both end together."""
    engine = sa.create_engine("sqlite://", creator=lambda: _connect(":memory:"), poolclass=sa.StaticPool)
    event.listen(engine, "begin", _begin)
    return engine


def prepare_file(address: FileAddress) -> None:
    """Creates the folders of a database file's path, not the file. Raises UsageError if it cannot."""
    try:
        address.path.parent.mkdir(parents=True, exist_ok=True)
        exists = address.path.exists()
    except OSError as error:
        raise UsageError(f"database {address.shown}: cannot be created: {error.strerror}") from error
    if exists:
        require_file(address)
    elif not os.access(address.path.parent, os.W_OK):
        raise UsageError(f"database {address.shown}: its directory is read-only")


def require_file(address: FileAddress) -> None:
    """Raises UsageError unless the address names an existing, regular, readable file."""
    try:
        mode = address.path.stat().st_mode
    except OSError as error:
        raise UsageError(f"database {address.shown}: cannot be opened: {error.strerror}") from error
    if not stat.S_ISREG(mode):
        kind = "a directory" if stat.S_ISDIR(mode) else "no regular file"
        raise UsageError(f"database {address.shown}: found {kind}, allowed a file")
    if not os.access(address.path, os.R_OK):
        raise UsageError(f"database {address.shown}: the file may not be read")


def copy_pages(connection: Connection, file: Path, at_once: int = -1) -> None:
    """Copies a SQLite database to ``file``, ``at_once`` pages per step (-1: all pages in one step).

    Others may write between steps. Rolls back ``connection``'s transaction; replaces ``file``'s content.
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
