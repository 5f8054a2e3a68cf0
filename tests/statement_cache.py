"""One cache of compiled SQL statements for all databases of the tests, and one of their schema.

SQLAlchemy has one cache for each engine, and most tests open a database of their own.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import sqlalchemy as sa
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.engine.default import DefaultDialect

from tuner.db import database as revision

STATEMENTS: dict[object, object] = {}


class _Equal(DefaultDialect):
    """Equals every dialect of its class: the dialect is part of the key of a compiled statement."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    @classmethod
    def engine_created(cls, engine: Engine) -> None:
        engine.update_execution_options(compiled_cache=STATEMENTS)


class SharedSqlite(_Equal, SQLiteDialect_pysqlite):
    supports_statement_cache = True


class SharedPostgres(_Equal, PGDialect_psycopg):
    supports_statement_cache = True


def share_statements() -> None:
    """Makes every engine that is created from now on use one cache."""
    registry.register("sqlite", __name__, "SharedSqlite")
    registry.register("postgresql.psycopg", __name__, "SharedPostgres")


def share_schema() -> None:
    """Fills an empty database by the statements that filled the first database of its kind."""
    genuine = revision.create
    known: dict[tuple[str, str], list[str]] = {}

    def create(connection: Connection) -> None:
        key = connection.dialect.name, revision.REVISIONS[-1]
        if sa.inspect(connection).get_table_names():
            genuine(connection)
        elif key in known:
            for statement in known[key]:
                connection.exec_driver_sql(statement)
        else:
            known[key] = _noted(connection, genuine)

    revision.create = create


def _noted(connection: Connection, create: Callable[[Connection], None]) -> list[str]:
    """Returns the statements by which tables are made and the revision is stored."""
    made: list[str] = []

    def note(_: object, __: object, statement: str, *___: object) -> None:
        if statement.lstrip().startswith("CREATE"):
            made.append(statement)

    sa.event.listen(connection, "before_cursor_execute", note)
    create(connection)
    sa.event.remove(connection, "before_cursor_execute", note)
    return [*made, f"INSERT INTO {revision.VERSION_TABLE} VALUES ('{revision.REVISIONS[-1]}')"]


@contextmanager
def statements() -> Iterator[list[str]]:
    """Yields a list that gets the text of each statement that any database is asked meanwhile."""
    asked: list[str] = []

    def note(_: object, __: object, statement: str, *___: object) -> None:
        asked.append(statement)

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        yield asked
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", note)
