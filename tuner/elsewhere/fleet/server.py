"""The PostgreSQL server of a fleet, and a node's session, which repeats queries while it is away.

``connected`` and ``session`` connect once. ``ReconnectingSession`` repeats a query over new connections, as
long as ``RetryLimit`` allows.
"""

import asyncio
import contextlib
import importlib.util
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar, final

from tuner.core.errors import TunerError, UsageError, install_extra
from tuner.core.passwords import masked, without_secrets

if TYPE_CHECKING:
    import psycopg


if TYPE_CHECKING:
    Connection = psycopg.Connection[tuple[Any, ...]]

SCHEMES = ("postgresql", "postgres", "postgresql+psycopg")
PACKAGES = ("procrastinate", "psycopg")
CONNECT_LIMIT_S = 10
# A machine that vanishes closes no connection: client or server notices within half a minute.
KEEP_ALIVE: Final[dict[str, Any]] = {
    "keepalives_idle": 10,  # s
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,  # ms
}
KEEP_ALIVE_THERE: Final = (
    "SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3; "
    "SET tcp_user_timeout = 30000"  # in one round trip
)
P = ParamSpec("P")
Reply = TypeVar("Reply")
AGAIN_S: Final = 0.5  # until a query is repeated
RETRY_LIMIT_S: Final = 300.0  # after which the outcome of the work is lost
ENDING_RETRY_LIMIT_S: Final = 5.0  # for a node that is to end


class NoReplyError(UsageError):
    """The PostgreSQL server of a fleet's database does not answer, or refuses the connection."""


def require_packages() -> None:
    """Raises UsageError if procrastinate or psycopg, which a fleet needs, is not installed."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(
            f"fleet: needs {' and '.join(PACKAGES)}, found no {' and no '.join(missing)}",
            install_extra("fleet"),
        )


def server_of(url: str) -> str:
    """Returns a database URL with libpq's scheme, ``postgresql://``.

    Raises UsageError for a URL or path of another kind of database.
    """
    scheme, is_url, rest = url.partition("://")
    if is_url and scheme in SCHEMES:
        return f"postgresql://{rest}"
    is_named = is_url and scheme.isalnum()
    named = f"a {scheme} URL" if is_named else repr(masked(url))  # another URL may hold a password
    raise UsageError(
        f"fleet: found {named} as its database, allowed postgresql://USER@HOST/DATABASE: "
        "drivers and nodes meet on a server (--db, or TUNER_DB of the environment)"
    )


def as_role(url: str, role: str | None) -> str:
    """Returns a URL with ``role`` in place of user and password; as it is if ``role`` is None or ""."""
    scheme, _, rest = url.partition("://")
    server, slash, database = rest.partition("/")
    if role:
        return f"{scheme}://{role}@{server.rpartition('@')[2]}{slash}{database}"
    return url


def connected(url: str) -> "Connection":
    """Returns a connection to the server at ``url``; each statement is committed by itself.

    Raises NoReplyError if the server does not answer or refuses, UsageError for a missing package and for a
    URL of another kind of database.
    """
    require_packages()
    import psycopg

    try:
        connection: Connection = psycopg.connect(
            server_of(url),
            autocommit=True,
            connect_timeout=CONNECT_LIMIT_S,
            application_name="tuner fleet",
            **KEEP_ALIVE,
        )
        connection.execute(KEEP_ALIVE_THERE)  # locks of a run or of a sweep end when their machine vanishes
    except psycopg.Error as error:
        raise NoReplyError(
            f"fleet: its database does not answer: {without_secrets(_first_line(error), url)}"
        ) from error
    return connection


@contextlib.contextmanager
def session(url: str) -> "Iterator[Connection]":
    """Context manager: gives a connection that commits each statement; the server's errors become TunerError.

    Raises NoReplyError if no server answers.
    """
    with contextlib.closing(connected(url)) as connection, plain_errors():
        yield connection


@contextlib.contextmanager
def plain_errors() -> Iterator[None]:
    """Context manager: turns errors of the PostgreSQL server into a TunerError of one line."""
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        raise TunerError(f"fleet: database: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


@final
class RetryLimit:
    """How long a query may be repeated while the database server is away, from construction on."""

    def __init__(self, ending: asyncio.Event) -> None:
        self._ending = ending
        self._since_s = time.monotonic()

    @property
    def is_over(self) -> bool:
        """Returns whether RETRY_LIMIT_S seconds have passed; ENDING_RETRY_LIMIT_S if the node is to end."""
        retry_limit_s = ENDING_RETRY_LIMIT_S if self._ending.is_set() else RETRY_LIMIT_S
        return time.monotonic() - self._since_s > retry_limit_s


@final
class ReconnectingSession:
    """A database session that repeats a query, over a new connection, while the server is away."""

    def __init__(self, url: str, ending: asyncio.Event) -> None:
        self._url = url
        self._ending = ending
        self._thread = ThreadPoolExecutor(1, "database")
        self._connection: Connection | None = None

    async def ask(
        self, question: "Callable[Concatenate[Connection, P], Reply]", *args: P.args, **named: P.kwargs
    ) -> Reply:
        """Returns ``question(connection, ...)``, repeated while the server is away.

        Raises TunerError if the server is away for longer than RetryLimit allows.
        """
        work: Any = lambda: self._asked(lambda: question(self._connected(), *args, **named))  # noqa: E731
        reply: Reply = await asyncio.get_running_loop().run_in_executor(self._thread, work)
        return reply

    def close(self) -> None:
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
