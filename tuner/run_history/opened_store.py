"""Opens the results database: to write, which may create it, or to read, which never does."""

from pathlib import Path

from tuner.core.errors import UsageError
from tuner.core.runs import TaskQuery
from tuner.db.address import is_missing, parse_address
from tuner.db.store import Store
from tuner.run_history.which_database import which_database
from tuner.tuning.advice import tune_command


def open_or_create(named: str | Path | None) -> Store:
    """Opens the named or the default database; creates a missing file. Raises UsageError on failure."""
    return Store.open(which_database(named))


def open_known(named: str | Path | None) -> Store:
    """Opens a database to read: a named database must exist, a missing default one counts as empty.

    Raises UsageError for a named database that does not exist, or a file of another program.
    """
    return Store.open_or_empty(which_database(None)) if named is None else open_existing(named)


def open_existing(named: str | Path | None) -> Store:
    """Opens the named or the default database. Raises UsageError for a database that does not exist."""
    url = which_database(named)
    if is_missing(url):
        line = f"database {parse_address(url).shown}: no such file"
        raise UsageError(line, tune_command(TaskQuery()))
    return Store.open_existing(url)
