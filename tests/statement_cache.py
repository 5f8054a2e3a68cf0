"""One cache of compiled SQL statements for all databases that the tests open.

SQLAlchemy keeps one for each engine, and most tests open a database of their own.
"""

from sqlalchemy.dialects import registry
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.engine import Engine
from sqlalchemy.engine.default import DefaultDialect

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
    """Lets every engine that is made from now on use the one cache."""
    registry.register("sqlite", __name__, "SharedSqlite")
    registry.register("postgresql.psycopg", __name__, "SharedPostgres")
