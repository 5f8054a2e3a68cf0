"""A backup of a database that is in use: one consistent state, as a SQLite file."""

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from tuner.core.errors import UsageError
from tuner.db.address import FileAddress, parse_address, require_path
from tuner.db.database import Database
from tuner.db.error_lines import plain_errors
from tuner.db.merge import Merge
from tuner.db.opening import copy_pages

PAGES = 2000  # copied in one step: other processes may write between two steps
SIDE_FILES = ("", "-wal", "-shm", "-journal")


def backup(database: Database, url: str, file: Path) -> None:
    """Writes a copy of an open results database to a new SQLite file, whole or not at all.

    ``url`` is the address of ``database``, a SQLite file or a PostgreSQL server. Of a server, runs and trials
    are copied as ``Merge`` does, but not the tables of a fleet. Raises UsageError where ``file`` exists
    already, cannot be written or looks like a mistyped URL, and where its folder is missing.
    """
    require_path(str(file))
    if file.exists():
        raise UsageError(f"{file}: exists already")
    if not file.absolute().parent.is_dir():
        raise UsageError(f"{file}: no such directory")
    address = parse_address(url)
    with _temporary_next_to(file) as temporary:
        if isinstance(address, FileAddress):
            with _plain_sqlite_errors(file), plain_errors(database.shown), database.connected() as connection:
                copy_pages(connection, temporary, PAGES)
        else:
            _copy_rows(database, temporary)
        _sync(temporary)
        try:
            os.link(temporary, file)  # fails where the file exists
        except OSError as error:
            raise UsageError(f"{file}: cannot be written: {error.strerror}") from error


def _copy_rows(database: Database, file: Path) -> None:
    copy = Database.open(str(file))
    try:
        with database.reading() as theirs, copy.writing() as ours:
            Merge(ours, theirs).do()
    finally:
        copy.close()  # the last connection writes the log into the file


@contextlib.contextmanager
def _plain_sqlite_errors(file: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:  # of the copy: no place to write to, a full disk
        raise UsageError(f"{file}: cannot be written: {error}") from error


@contextlib.contextmanager
def _temporary_next_to(file: Path) -> Iterator[Path]:
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        yield temporary
    finally:
        for suffix in SIDE_FILES:
            Path(f"{temporary}{suffix}").unlink(missing_ok=True)


def _sync(file: Path) -> None:
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
