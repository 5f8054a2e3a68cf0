"""SQLAlchemy engines for addresses: how a file or a server is connected to."""

import contextlib
import os
import sqlite3
import stat
import time
from pathlib import Path
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine

from tuner.core.errors import UsageError
from tuner.db.address import FileAddress, ServerAddress
from tuner.db.error_lines import BUSY_LIMIT_S

CONNECT_LIMIT_S = 10  # for a server that does not answer
RETRY_PAUSE_S = 0.01
WRITES = "tuner_writes"  # execution option: the transaction will write


def open_engine(address: FileAddress | ServerAddress) -> Engine:
    """Returns an engine of SQLAlchemy for a database's address; the engine connects on first use.

    Raises UsageError for a server where the package psycopg is missing.
    """
    if isinstance(address, ServerAddress):
        return _server_engine(address)
    return _file_engine(address.path)


def empty_engine() -> Engine:
    """Returns an engine of SQLAlchemy on an empty SQLite database in memory; both end together."""
    engine = sa.create_engine("sqlite://", creator=lambda: _connect(":memory:"), poolclass=sa.StaticPool)
    event.listen(engine, "begin", _begin)
    return engine


def prepare_file(address: FileAddress) -> None:
    """Creates the missing folders of a database file's path, but not the file.

    Raises UsageError for a path at which no database file can be created, and for an existing path that is
    not a regular, readable file.
    """
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

    Other processes may write between two steps. Rolls back the open transaction of ``connection``, and
    replaces the content of ``file``.
    """
    with contextlib.closing(sqlite3.connect(file)) as copy:
        source = connection.connection.driver_connection
        assert isinstance(source, sqlite3.Connection)
        source.rollback()  # ends SQLAlchemy's transaction; SQLite's backup begins one itself
        source.backup(copy, pages=at_once)
        copy.execute("PRAGMA journal_mode = DELETE")  # so that the copy is one file


def _server_engine(address: ServerAddress) -> Engine:
    limits = {} if "connect_timeout" in address.url.query else {"connect_timeout": CONNECT_LIMIT_S}
    try:
        return sa.create_engine(address.url, connect_args=limits, pool_pre_ping=True)
    except ImportError as error:
        raise UsageError(
            f"database {address.shown}: PostgreSQL needs psycopg 3, found none; pip install 'psycopg[binary]'"
        ) from error


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
    """Connects read-only, next to a writer where possible: WAL needs two more files, a log and its index."""
    has_log = Path(f"{path}-wal").exists() or os.access(path.parent, os.W_OK)
    # without a log there is no writer: SQLite need not create a log where it cannot
    return _connect(f"file:{quote(str(path))}?{'mode=ro' if has_log else 'immutable=1'}", uri=True)


def _connect(database: str, uri: bool = False) -> sqlite3.Connection:
    return sqlite3.connect(
        database, timeout=BUSY_LIMIT_S, isolation_level=None, check_same_thread=False, uri=uri
    )


def _enter_wal(connection: sqlite3.Connection) -> None:
    """Switches to WAL, with a timeout: SQLite does not wait when two processes switch a new file at once."""
    give_up = time.monotonic() + BUSY_LIMIT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                raise
        time.sleep(RETRY_PAUSE_S)


def _begin(connection: Connection) -> None:
    """Takes the lock of a writer at the begin of a transaction that will write.

    SQLite lets no reader become a writer after another process wrote.
    """
    writes = connection.get_execution_options().get(WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
