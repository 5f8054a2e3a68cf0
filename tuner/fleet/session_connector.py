"""Procrastinate over a connection of the tuner: its statements are part of the tuner's transactions."""

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar, final

from procrastinate import BaseConnector
from psycopg.rows import dict_row
from psycopg.types.json import JsonbDumper

if TYPE_CHECKING:
    from typing import LiteralString

    import psycopg

    from tuner.fleet.server import Connection

Row = dict[str, Any]
Result = TypeVar("Result")


@final
class SessionConnector(BaseConnector):
    """A connector of Procrastinate that uses an open connection of the tuner, within its transactions.

    It raises psycopg's errors, as the tuner's statements do. Its coroutines never suspend.
    """

    def __init__(self, connection: "Connection") -> None:
        self._connection = connection

    def get_sync_connector(self) -> BaseConnector:
        """Returns this connector, which is synchronous."""
        return self

    def execute_query(self, query: "LiteralString", **arguments: Any) -> None:
        """Executes an SQL statement with named arguments, without a result."""
        self._executed(query, arguments)

    def execute_query_one(self, query: "LiteralString", **arguments: Any) -> Row:
        """Executes an SQL query with named arguments; returns its only row as {column: value}."""
        row = self._executed(query, arguments).fetchone()
        assert row is not None
        return row

    def execute_query_all(self, query: "LiteralString", **arguments: Any) -> list[Row]:
        """Executes an SQL query with named arguments; returns its rows, each as {column: value}."""
        return self._executed(query, arguments).fetchall()

    async def execute_query_async(self, query: "LiteralString", **arguments: Any) -> None:
        """Executes an SQL statement without a result, as ``execute_query`` does; never suspends."""
        self.execute_query(query, **arguments)

    async def execute_query_all_async(self, query: "LiteralString", **arguments: Any) -> list[Row]:
        """Returns the rows of an SQL query, as ``execute_query_all`` does; never suspends."""
        return self.execute_query_all(query, **arguments)

    def _executed(self, query: "LiteralString", arguments: dict[str, Any]) -> "psycopg.Cursor[Row]":
        cursor = self._connection.cursor(row_factory=dict_row)
        cursor.adapters.register_dumper(dict, JsonbDumper)  # arguments of jobs
        return cursor.execute(query, arguments)


def completed(call: Coroutine[Any, Any, Result]) -> Result:
    """Runs a coroutine of Procrastinate to its end without an event loop, and returns its result.

    For calls without a synchronous form, on a SessionConnector, whose coroutines never suspend. Raises
    RuntimeError if the coroutine suspends.
    """
    try:
        call.send(None)
    except StopIteration as end:
        result: Result = end.value
        return result
    raise RuntimeError("a call on a SessionConnector waits for something")
