"""The engine's way to its server: what became of a job is told again until the server has heard it."""

import asyncio
from typing import TYPE_CHECKING, Any, Final, final

import psycopg
from procrastinate import PsycopgConnector
from procrastinate.exceptions import ConnectorException

from tuner.fleet.reconnecting_session import AGAIN_S, RetryLimit
from tuner.fleet.server import KEEP_ALIVE, server_of

if TYPE_CHECKING:
    from typing import LiteralString

OPEN_S: Final = 5.0  # that a connection may take


@final
class QueueConnector(PsycopgConnector):
    """A pool of connections, whose loss in the middle of a statement leaves no job without an end.

    The engine opens broken connections anew without a word. A job whose end was lost with one would be
    worked at for ever: its node lives, and nobody has it.
    """

    def __init__(self, url: str, connections: int, ending: asyncio.Event) -> None:
        """Takes the most connections, and what says that the node is to end."""
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
        """Does a statement without an answer; again, if it is about a job and the server went away.

        Raises ConnectorException where the server refuses it, such as an end that it heard before.
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
    """Lets a statement be a transaction: the engine has no longer ones, and asks the server half as often."""
    await connection.set_autocommit(True)


async def require_server(url: str) -> None:
    """Raises what psycopg raises where no server answers: the engine's pool would wait for one."""
    connection = await psycopg.AsyncConnection.connect(server_of(url), connect_timeout=round(OPEN_S))
    await connection.close()
