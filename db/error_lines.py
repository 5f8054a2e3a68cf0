"""Errors of a database as messages of one line."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, OperationalError, ProgrammingError

from tuner.core.address_secrets import without_secrets
from tuner.core.errors import UsageError

BUSY_LIMIT_S = 30.0  # how long a writer waits for another one
BEYOND_64_BITS = "a number does not fit 64 bits"
DAMAGED = "found a damaged database; restore a copy, or choose another file with --db"
QUOTED = 60  # characters of what was found damaged

# https://www.sqlite.org/rescode.html: extended codes begin with the name of their primary code
SQLITE_SENTENCES = (
    ("SQLITE_NOTADB", "is not a SQLite database"),
    ("SQLITE_CORRUPT", DAMAGED),
    ("SQLITE_FULL", "the disk is full; what was stored before is kept"),
    ("SQLITE_READONLY", "is read-only: it can be queried, not written"),
    (
        "SQLITE_CANTOPEN",
        "cannot be opened: the file must be readable, its directory writable",
    ),
    ("SQLITE_BUSY", f"is locked by another process for more than {BUSY_LIMIT_S:.0f} s"),
    (
        "SQLITE_IOERR",
        "the disk refused to read or write (quota, size limit or defect); what was stored is kept",
    ),
)
# https://www.postgresql.org/docs/current/errcodes-appendix.html: classes, and single codes
POSTGRES_SENTENCES = (
    ("22003", BEYOND_64_BITS),
    ("53100", "the server's disk is full; what was stored before is kept"),
    ("25006", "is read-only: it can be queried, not written"),
    ("42501", "this user lacks a permission"),
    ("3D000", "does not exist on the server"),
    ("08", "the connection was lost"),
    ("28", "the server refused the user or password"),
    ("53", "the server is short of resources"),
    ("57", "the server stopped or cancelled the work"),
    ("58", "the server's system failed"),
)


@contextmanager
def plain_errors(shown: str, address: str = "") -> Iterator[None]:
    """Turns database errors in a ``with`` block into UsageErrors of one line; other errors pass unchanged.

    Database errors are those of the file or server, of damaged texts, and of numbers beyond 64 bits and texts
    that are no Unicode. ``shown`` is the address that messages print; ``address`` is the full URL, whose
    passwords are removed from a driver's text.
    """
    try:
        yield
    except DBAPIError as error:
        sentence = _sentence(error)
        if sentence is None:
            raise
        raise UsageError(f"database {shown}: {without_secrets(sentence, address)}") from error
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"database {shown}: {DAMAGED}") from error
    except UnicodeEncodeError as error:
        raise UsageError(f"database {shown}: a text is no Unicode: {error.object[:QUOTED]!r}") from error
    except OverflowError as error:
        raise UsageError(f"database {shown}: {BEYOND_64_BITS}") from error


@contextmanager
def damaged_rows(shown: str) -> Iterator[None]:
    """Turns what reading a damaged row raises into a UsageError; for blocks that only read and convert rows.

    SQLite keeps no checksums: a damaged page gives rows with other texts and types than were stored.
    """
    try:
        yield
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        what = " ".join(str(error).split())[:QUOTED]
        raise UsageError(f"database {shown}: {DAMAGED} (a stored value: {what})") from error


def _sentence(error: DBAPIError) -> str | None:
    if isinstance(error.orig, sqlite3.Error):
        name = getattr(error.orig, "sqlite_errorname", "")  # "": of Python's module, not of SQLite
        is_no_text = not name and isinstance(error.orig, sqlite3.OperationalError)  # it is not UTF-8
        return DAMAGED if is_no_text else _matching(name, SQLITE_SENTENCES)
    state = getattr(error.orig, "sqlstate", None)
    if state is not None:
        return _matching(state, POSTGRES_SENTENCES)
    line = " ".join(str(error.orig).split())
    # libpq refuses an option of the address
    is_of_address = isinstance(error, ProgrammingError) and "connection" in line
    # no reply from a server: libpq's message is all there is
    if isinstance(error, OperationalError) or is_of_address:
        return line
    return None


def _matching(code: str, sentences: tuple[tuple[str, str], ...]) -> str | None:
    return next((sentence for prefix, sentence in sentences if code.startswith(prefix)), None)
