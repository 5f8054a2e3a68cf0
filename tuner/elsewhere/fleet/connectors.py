"""Connections for the queue library: a node's pool, and an adapter of an open session of the tuner."""

import asyncio
from typing import TYPE_CHECKING, Any, Final, final

import psycopg
from procrastinate import BaseConnector, PsycopgConnector
from procrastinate.exceptions import ConnectorException
from psycopg.rows import dict_row
from psycopg.types.json import JsonbDumper

from tuner.elsewhere.fleet.server import AGAIN_S, KEEP_ALIVE, RetryLimit, server_of

if TYPE_CHECKING:
    from typing import LiteralString

    from tuner.elsewhere.fleet.server import Connection

OPEN_S: Final = 5.0  # that a connection may take
Row = dict[str, Any]


@final
class QueueConnector(PsycopgConnector):
    """A pool of connections to the job queue that repeats the end of a job if a connection is lost.

    Procrastinate replaces broken connections silently: a job whose end was lost stays "doing" for ever.
    """

    def __init__(self, url: str, connections: int, ending: asyncio.Event) -> None:
        super().__init__(
            conninfo=server_of(url),
            kwargs=dict(KEEP_ALIVE),
            min_size=1,
            max_size=connections,
            timeout=OPEN_S,
            configure=_commit_each,
        )
        self._ending = ending

    async def execute_query_async(self, query: "LiteralString", **arguments: Any) -> None:
        """Executes an SQL statement without a result; repeats one about a job while the connection is lost.

        Raises ConnectorException if that takes longer than RetryLimit allows, and if the server refuses the
        statement, such as the end of a job that has ended already.
        """
        retry_limit = RetryLimit(self._ending)
        while True:
            try:
                await super().execute_query_async(query, **arguments)
                return
            except ConnectorException as error:
                is_lost = isinstance(error.__cause__, psycopg.OperationalError)
                if retry_limit.is_over or not is_lost or "job_id" not in arguments:
                    raise
            await asyncio.sleep(AGAIN_S)


async def _commit_each(connection: "psycopg.AsyncConnection[Any]") -> None:
    """Makes every statement a transaction: Procrastinate uses no longer ones; round trips are halved."""
    await connection.set_autocommit(True)


async def require_server(url: str) -> None:
    """Raises psycopg's error if no server answers at ``url``; Procrastinate's pool would wait for one.

    Raises UsageError for a URL of another kind of database.
    """
    connection = await psycopg.AsyncConnection.connect(server_of(url), connect_timeout=round(OPEN_S))
    await connection.close()


@final
class SessionConnector(BaseConnector):
    """A Procrastinate connector on an open connection of tuner, within whose transactions it works."""

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
