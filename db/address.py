"""The address of a database: a file's path or a URL, parsed into a value."""

import re
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from tuner.core.errors import UsageError
from tuner.core.passwords import has_secret, masked

POSTGRES_DRIVER = "postgresql+psycopg"
SCHEME = re.compile(r"[a-z][a-z0-9+.-]*", re.IGNORECASE)
# Mistyped URLs of servers: postgresql//, postgres:/, mysql:
MISTYPED = re.compile(r"(postgres|psql|mysql|mariadb|sqlite)[\w+.-]*(:|//)|[a-z][\w+.-]+:/", re.IGNORECASE)
ALLOWED = "a file's path, sqlite:///PATH or postgresql://USER@HOST/DATABASE"


@dataclass(frozen=True)
class FileAddress:
    """The address of a results database in a SQLite file: the file's absolute path."""

    path: Path

    @property
    def shown(self) -> str:
        """Returns the address as ``sqlite:///PATH`` for messages, with *** in place of a password."""
        return masked(f"sqlite:///{self.path}")


@dataclass(frozen=True)
class ServerAddress:
    """The address of a results database on a PostgreSQL server: its parsed URL, and the text as typed."""

    url: URL
    text: str  # as it was given

    @property
    def shown(self) -> str:
        return f"{POSTGRES_DRIVER}://{masked(self.text).partition('://')[2]}"


def parse_address(text: str) -> FileAddress | ServerAddress:
    """Parses the address of a results database: a file's path, ``sqlite:///PATH`` or ``postgresql://...``.

    Returns a file's absolute path or a server's URL; opens nothing. Raises UsageError for a malformed
    address, and for a URL of another scheme.
    """
    if not text or "\0" in text:
        raise UsageError(f"database: found {masked(text)!r}, allowed {ALLOWED}")
    if "://" not in text:
        require_path(text)
        return _file(text)
    scheme = text.split("://", 1)[0]
    if scheme and not SCHEME.fullmatch(scheme):
        raise UsageError(f"database: malformed URL, allowed {ALLOWED}")
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):  # the text, which the error repeats, may hold a password
        raise UsageError(f"database: found a malformed {scheme} URL, allowed {ALLOWED}") from None
    if scheme in ("postgres", "postgresql", POSTGRES_DRIVER):
        return ServerAddress(url.set(drivername=POSTGRES_DRIVER), text)
    if scheme != "sqlite":
        raise UsageError(f"database: found a {scheme} URL, allowed {ALLOWED}")
    if url.host or url.username or url.query or url.database in (None, "", ":memory:"):
        raise UsageError(f"database: found {masked(text)}, allowed {ALLOWED}")
    return _file(str(url.database))


def is_missing(text: str) -> bool:
    """Returns True if a database's address (path or URL) names a SQLite file that does not exist.

    False for a server's URL; nothing is opened. Raises UsageError for a malformed address.
    """
    address = parse_address(text)
    if isinstance(address, ServerAddress):
        return False
    try:
        address.path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False  # the path exists, but cannot be read
    return False


def require_path(text: str) -> None:
    """Raises UsageError if a path looks like a mistyped URL (``postgres:/host/name``) or holds a password."""
    is_path = text.startswith(("/", "./", "../", "~")) and not text.startswith("//")
    if not is_path and (MISTYPED.match(text) or has_secret(text)):
        raise UsageError(f"database: found a mistyped URL, allowed {ALLOWED}; a file of that name: ./NAME")


def _file(text: str) -> FileAddress:
    try:
        return FileAddress(Path(text).expanduser().absolute())
    except RuntimeError as error:  # ~name of a user that does not exist
        raise UsageError(f"database: found {masked(text)!r}, allowed {ALLOWED}") from error
