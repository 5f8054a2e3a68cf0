"""A connected database whose schema is at the head revision, and its transactions."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Self, final

from sqlalchemy.engine import Connection, Engine
from sqlalchemy.orm import Session

from tuner.db.address import FileAddress, parse_address
from tuner.db.deleted_file import FileInPlace
from tuner.db.error_lines import damaged_rows, plain_errors
from tuner.db.opening import WRITES, empty_engine, open_engine, prepare_file, require_file
from tuner.db.revision import bring_to_head


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
        """Opens the database at a path or URL; creates a missing SQLite file and upgrades an older schema.

        Raises UsageError where that fails.
        """
        return cls._opened(url, prepare_file)

    @classmethod
    def open_existing(cls, url: str) -> Self:
        """Opens the database at a path or URL and upgrades an older schema; creates no file.

        Raises UsageError for a file that is missing or cannot be read, and where no server answers.
        """
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
        """Returns an empty database in memory.

        ``url`` is the address of a file that does not exist yet; it is printed in messages, and no file is
        created.
        """
        return cls(empty_engine(), parse_address(url).shown)

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Opens a session of SQLAlchemy for a ``with`` block; its queries see one state of the database."""
        with damaged_rows(self.shown), self._plain_errors(), Session(self._reader) as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """Opens a session of SQLAlchemy for a ``with`` block; it is committed at the end of the block.

        An exception rolls the transaction back. After the commit, raises UsageError where the SQLite file was
        deleted or replaced meanwhile.
        """
        with self._plain_errors(), Session(self._writer) as session, session.begin():
            yield session
        self._require_file()

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Opens a connection for SQL statements in a ``with`` block, committed at the end of the block.

        An exception rolls the transaction back. After the commit, raises UsageError where the SQLite file was
        deleted or replaced meanwhile.
        """
        with self._plain_errors(), self._writer.begin() as connection:
            yield connection
        self._require_file()

    @contextmanager
    def connected(self) -> Iterator[Connection]:
        """Opens a connection for SQL queries in a ``with`` block; nothing is committed."""
        with self._plain_errors(), self._engine.connect() as connection:
            yield connection

    def close(self) -> None:
        """Closes all connections to the database."""
        self._engine.dispose()

    def _plain_errors(self) -> AbstractContextManager[None]:
        return plain_errors(self.shown, self._address)

    def _require_file(self) -> None:
        if self._file is not None:
            self._file.require()
