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
    """A connector that raises psycopg's errors, as the tuner's own statements do.

    Its coroutines never suspend.
    """

    def __init__(self, connection: "Connection") -> None:
        self._connection = connection

    def get_sync_connector(self) -> BaseConnector:
        return self

    def execute_query(self, query: "LiteralString", **arguments: Any) -> None:
        self._executed(query, arguments)

    def execute_query_one(self, query: "LiteralString", **arguments: Any) -> Row:
        row = self._executed(query, arguments).fetchone()
        assert row is not None
        return row

    def execute_query_all(self, query: "LiteralString", **arguments: Any) -> list[Row]:
        return self._executed(query, arguments).fetchall()

    async def execute_query_async(self, query: "LiteralString", **arguments: Any) -> None:
        self.execute_query(query, **arguments)

    async def execute_query_all_async(self, query: "LiteralString", **arguments: Any) -> list[Row]:
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
