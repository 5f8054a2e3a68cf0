"""The PostgreSQL server to which the drivers and nodes of a fleet connect."""

import contextlib
import importlib.util
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from tuner.core.address_secrets import masked, without_secrets
from tuner.core.errors import TunerError, UsageError

if TYPE_CHECKING:
    import psycopg

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


class NoReplyError(UsageError):
    """An error: the PostgreSQL server of a fleet's database does not answer, or refuses the connection."""


def require_packages() -> None:
    """Raises UsageError where procrastinate or psycopg is missing, which a fleet needs."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(
            f"fleet: needs {' and '.join(PACKAGES)}, found no {' and no '.join(missing)}; "
            "in a clone: pip install -e '.[fleet]'"
        )


def server_of(url: str) -> str:
    """Returns a PostgreSQL URL with the scheme that PostgreSQL's library reads: ``postgresql://...``.

    Raises UsageError for an address of another kind.
    """
    scheme, is_url, rest = url.partition("://")
    if is_url and scheme in SCHEMES:
        return f"postgresql://{rest}"
    is_named = is_url and scheme.isalnum()
    found = f"a {scheme} URL" if is_named else repr(masked(url))  # another URL may hold a password
    raise UsageError(
        f"fleet: found {found} as its database, allowed postgresql://USER@HOST/DATABASE: "
        "drivers and nodes meet on a server (--db, or TUNER_DB of the environment)"
    )


def as_role(url: str, role: str | None) -> str:
    """Returns a PostgreSQL URL with ``role`` in place of the user and password before the host.

    Returns ``url`` unchanged where ``role`` is None or empty.
    """
    scheme, _, rest = url.partition("://")
    place, slash, database = rest.partition("/")
    return f"{scheme}://{role}@{place.rpartition('@')[2]}{slash}{database}" if role else url


def connected(url: str) -> "Connection":
    """Returns a connection to a PostgreSQL server that commits each statement.

    Raises NoReplyError where no server answers or the server refuses the connection (unknown user, wrong
    password), UsageError for another kind of URL or a missing package.
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
    """Opens a connection to a PostgreSQL server for a ``with`` block; each statement is committed.

    An error of the server in the block becomes a TunerError of one line. Raises NoReplyError where no server
    answers.
    """
    with contextlib.closing(connected(url)) as connection, plain_errors():
        yield connection


@contextlib.contextmanager
def plain_errors() -> Iterator[None]:
    """Turns errors of the PostgreSQL server in a ``with`` block into a TunerError of one line."""
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        raise TunerError(f"fleet: database: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
