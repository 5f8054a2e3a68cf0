"""Which results database is used, for the command line and the Python API alike."""

import contextlib
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from tuner.core.errors import TunerError, UsageError
from tuner.core.passwords import has_secret, without_secrets

VARIABLE = "TUNER_DB"  # of the environment
COMMAND = re.compile(r"(?:^|: )tuner [a-z]")  # as a hint is one, or ends with one


def which_database(named: str | Path | None) -> str:
    """Returns the path or URL of the results database: ``named``, else the environment variable ``TUNER_DB``.

    Without both: tuner.db in the user's data directory. Raises UsageError if ``named`` is not text or a path.
    """
    if not isinstance(named, str | Path | None):
        raise UsageError(f"database: found {named!r}, allowed a file's path or a URL")
    return str(named if named is not None else os.environ.get(VARIABLE) or default_file())


def shown_database(named: str | Path | None) -> str:
    """Returns the path or URL of the results database for messages, with ~ for the home folder.

    Passwords are replaced by ***.
    """
    where = which_database(named)
    home = f"{Path.home()}{os.sep}"
    if where.startswith(home):
        return f"~{os.sep}{where.removeprefix(home)}"
    return without_secrets(where, where)


def is_named(named: str | Path | None) -> bool:
    """Returns whether ``named`` or the environment names a database; False: the default file is used."""
    return named is not None or bool(os.environ.get(VARIABLE))


def database_text(named: str | Path | None) -> str:
    """Returns the option to append to a suggested command so that it uses the same database: " --db runs.db".

    "" for None, the default database; a URL with a password is replaced by the word URL.
    """
    if named is None:
        return ""
    if has_secret(str(named)):
        return " --db URL"
    return f" --db {shlex.quote(str(named))}"


@contextlib.contextmanager
def naming_database(named: str | Path | None) -> Iterator[None]:
    """Context manager: adds ``--db NAME`` to the hint of a TunerError from its body and re-raises the error.

    A hint that does not end with a tuner command, and any hint for ``named`` None, stays as it is.
    """
    try:
        yield
    except TunerError as error:
        if COMMAND.search(error.hint):
            error.hint += database_text(named)
        raise


def default_file() -> Path:
    """Returns the path of the default results database: tuner.db in the user's data directory."""
    import platformdirs

    return platformdirs.user_data_path("tuner") / "tuner.db"
