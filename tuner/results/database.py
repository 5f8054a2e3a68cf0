"""How the results database is opened: to write, which may create the file, or to read."""

from pathlib import Path

from tuner.core.errors import UsageError
from tuner.core.problem_text import tune_command
from tuner.core.queries import TaskQuery
from tuner.db.address import is_missing, parse_address
from tuner.db.store import Store
from tuner.results.database_name import is_named, which_database


def open_or_create(named: str | Path | None) -> Store:
    """Opens the results database ``named``, a path or URL, for writing; returns the Store.

    None: the default database. Creates a missing file.
    """
    return Store.open(which_database(named))


def open_known(named: str | Path | None, hint: str = "") -> Store:
    """Opens the results database ``named`` (None: the default) for queries; never creates a file.

    If none is named and the default file is missing, returns an empty database. Raises UsageError for a
    missing file that ``named`` or the environment variable names; its hint is ``hint``, or a command that
    creates a file.
    """
    if is_named(named):
        return open_existing(named, hint)
    return Store.open_or_empty(which_database(None))


def open_or_empty(named: str | Path | None) -> Store:
    """Opens the results database ``named`` for functions that also work without results; creates no file.

    A missing file gives an empty database; if ``named`` itself is missing, raises UsageError. A file that the
    environment variable names may be created later.
    """
    if named is not None:
        return open_existing(named)
    return Store.open_or_empty(which_database(None))


def open_existing(named: str | Path | None, hint: str = "") -> Store:
    """Opens the results database ``named`` (None: the default), whose file must exist.

    Raises UsageError for a missing file; its hint is ``hint``, or a command that creates a file.
    """
    url = which_database(named)
    if is_missing(url):
        raise _no_such_file(url, hint)
    return Store.open_existing(url)


def known_url(named: str | Path | None) -> str:
    """Returns the path or URL of the results database ``named`` (None: the default).

    "" if ``named`` is None and the default file, which TUNER_DB may name, does not exist: a later command may
    create it. Raises UsageError if a database that is named does not exist.
    """
    url = which_database(named)
    if not is_missing(url):
        return url
    if named is not None:
        raise _no_such_file(url)
    return ""


def _no_such_file(url: str, hint: str = "") -> UsageError:
    return UsageError(f"database {parse_address(url).shown}: no such file", hint or tune_command(TaskQuery()))
