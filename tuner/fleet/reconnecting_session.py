"""A node's database session: one query at a time, repeated with a timeout while the server is away."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar, final

from tuner.core.errors import TunerError
from tuner.fleet.server import NoReplyError, connected

if TYPE_CHECKING:
    from tuner.fleet.server import Connection

P = ParamSpec("P")
Reply = TypeVar("Reply")
AGAIN_S: Final = 0.5  # until a query is repeated
RETRY_LIMIT_S: Final = 300.0  # after which the outcome of the work is lost
ENDING_RETRY_LIMIT_S: Final = 5.0  # for a node that is to end


@final
class RetryLimit:
    """A timeout for repeating one query while the database server is away, from its construction on."""

    def __init__(self, ending: asyncio.Event) -> None:
        """Takes the event that the node is to end, which shortens the timeout."""
        self._ending = ending
        self._since_s = time.monotonic()

    @property
    def is_over(self) -> bool:
        """True if more time has passed since the construction than a query may be repeated.

        That is 300 s (RETRY_LIMIT_S), or 5 s for a node that is to end (ENDING_RETRY_LIMIT_S).
        """
        retry_limit_s = ENDING_RETRY_LIMIT_S if self._ending.is_set() else RETRY_LIMIT_S
        return time.monotonic() - self._since_s > retry_limit_s


@final
class ReconnectingSession:
    """A database session that repeats a query, over a new connection, while the server is away.

    Queries run in another thread, one at a time, so that heartbeats and work continue meanwhile.
    """

    def __init__(self, url: str, ending: asyncio.Event) -> None:
        self._url = url
        self._ending = ending
        self._thread = ThreadPoolExecutor(1, "database")
        self._connection: Connection | None = None

    async def ask(
        self,
        question: "Callable[Concatenate[Connection, P], Reply]",
        *args: P.args,
        **named: P.kwargs,
    ) -> Reply:
        """Returns ``question(connection, *args, **named)``, called in the thread of the session.

        While the server is away, the call is repeated; raises TunerError where it stays away too long.
        """
        work: Any = lambda: self._asked(lambda: question(self._connected(), *args, **named))  # noqa: E731
        selected: Reply = await asyncio.get_running_loop().run_in_executor(self._thread, work)
        return selected

    def close(self) -> None:
        """Ends the session's thread and closes its connection."""
        self._thread.shutdown()
        self._disconnect()

    def _asked(self, question: Callable[[], Reply]) -> Reply:
        import psycopg

        retry_limit = RetryLimit(self._ending)
        while True:
            try:
                return question()
            except (psycopg.OperationalError, NoReplyError) as error:
                if retry_limit.is_over:
                    raise TunerError(f"fleet: its database went away: {error}") from error
            self._disconnect()
            time.sleep(AGAIN_S)

    def _connected(self) -> "Connection":
        if self._connection is None or self._connection.closed:
            self._connection = connected(self._url)
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None
