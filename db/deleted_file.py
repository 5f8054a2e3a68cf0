"""Detects that a SQLite file was deleted or replaced while it is open, and saves its content."""

import contextlib
import itertools
import os
import sqlite3
from pathlib import Path
from typing import final

from sqlalchemy.engine import Engine

from tuner.core.errors import UsageError
from tuner.db.opening import copy_pages


@final
class FileInPlace:
    """A check that an open SQLite file was neither deleted nor replaced, by its device and inode numbers."""

    def __init__(self, engine: Engine, path: Path, shown: str) -> None:
        """Takes an engine whose connections are to the file that exists now."""
        self._engine = engine
        self._path = path
        self._shown = shown
        self._identity = _identity_of(path)

    def require(self) -> None:
        """Raises UsageError where the database file was deleted or replaced since it was opened.

        Before that, copies the old file's content to a new file in the same folder, ``NAME.rescue-1`` or the
        next free number; the message names that file, or says why the copy failed. To be called while no
        connection is in use: the pooled connection has the old file open, a new one would create another.
        """
        if _identity_of(self._path) == self._identity:
            return
        try:
            rescued = f"what was stored is in {self._rescue()}"
        except (OSError, sqlite3.Error) as error:
            rescued = f"what was stored could not be rescued: {error}"
        raise UsageError(f"database {self._shown}: its file was deleted or replaced; {rescued}")

    def _rescue(self) -> Path:
        """Copies the old file, which exists as long as it is open, to a new file in the same folder."""
        file = self._new_file()
        with self._engine.connect() as connection:
            copy_pages(connection, file)
        return file

    def _new_file(self) -> Path:
        for number in itertools.count(1):
            file = self._path.with_name(f"{self._path.name}.rescue-{number}")
            with contextlib.suppress(FileExistsError):
                os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
                return file
        raise AssertionError("unreachable: some number is free")


def _identity_of(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
