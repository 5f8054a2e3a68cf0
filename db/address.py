"""Which database is meant: a file's path or a URL, read into a value."""

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from tuner.core.errors import UsageError

POSTGRES_DRIVER = "postgresql+psycopg"
ALLOWED = "a file's path, sqlite:///PATH or postgresql://USER@HOST/DATABASE"


@dataclass(frozen=True)
class FileAddress:
    """A SQLite file."""

    path: Path

    @property
    def shown(self) -> str:
        """Returns the URL for people."""
        return f"sqlite:///{self.path}"


@dataclass(frozen=True)
class ServerAddress:
    """A PostgreSQL database."""

    url: URL

    @property
    def shown(self) -> str:
        """Returns the URL for people, its password hidden."""
        return self.url.render_as_string(hide_password=True)


def parse_address(text: str) -> FileAddress | ServerAddress:
    """Reads a path or URL. Raises UsageError for another kind of database."""
    if not text or "\0" in text:
        raise UsageError(f"database: found {text!r}, allowed {ALLOWED}")
    if "://" not in text:
        return _file(text)
    scheme = text.split("://", 1)[0]
    try:
        url = make_url(text)
    except (ArgumentError, ValueError) as error:  # the text may hold a password: it is not repeated
        raise UsageError(f"database: found a malformed {scheme} URL, allowed {ALLOWED}") from error
    if scheme in ("postgres", "postgresql", POSTGRES_DRIVER):
        return ServerAddress(url.set(drivername=POSTGRES_DRIVER))
    if scheme != "sqlite":
        raise UsageError(f"database: found a {scheme} URL, allowed {ALLOWED}")
    if url.host or url.query or url.database in (None, "", ":memory:"):
        raise UsageError(f"database: found {text}, allowed {ALLOWED}")
    return _file(str(url.database))


def is_missing(text: str) -> bool:
    """Returns whether a path or URL names a file that does not exist. Raises as ``parse_address`` does."""
    address = parse_address(text)
    if isinstance(address, ServerAddress):
        return False
    try:
        address.path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False  # something is there that cannot be looked at
    return False


def _file(text: str) -> FileAddress:
    try:
        return FileAddress(Path(text).expanduser().absolute())
    except RuntimeError as error:  # ~name of a user that does not exist
        raise UsageError(f"database: found {text!r}, allowed {ALLOWED}") from error
