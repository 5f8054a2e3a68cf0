"""How the results database is opened: to write, or for questions, which never create one."""

from pathlib import Path

from tuner.core.errors import UsageError
from tuner.core.runs import TaskQuery
from tuner.db.address import is_missing, parse_address
from tuner.db.store import Store
from tuner.run_history.which_database import which_database
from tuner.tuning.advice import tune_command


def open_or_create(named: str | Path | None) -> Store:
    """Opens the database named, or the default one; creates its file. Raises UsageError when it cannot."""
    return Store.open(which_database(named))


def open_known(named: str | Path | None) -> Store:
    """Opens a database for questions: the one named has to exist, the default one may be empty.

    Raises UsageError where the one named does not exist, or another program made it.
    """
    return Store.open_or_empty(which_database(None)) if named is None else open_existing(named)


def open_existing(named: str | Path | None) -> Store:
    """Opens the database named, or the default one. Raises UsageError where it does not exist."""
    url = which_database(named)
    if is_missing(url):
        line = f"database {parse_address(url).shown}: no such file"
        raise UsageError(line, tune_command(TaskQuery()))
    return Store.open_existing(url)
