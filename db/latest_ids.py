"""The latest runs and trials of a SQLite file, for shell completion: read without SQLAlchemy."""

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from tuner.db.run_process import present_status

LISTED = 50  # largest number of ids offered
BUSY_LIMIT_S = 0.2  # a shell waits while its user types
RUNS = """
    select run.id, run.target, run.status, run.process, problem.key as problem
    from run join problem on problem.id = run.problem_id
    where cast(run.id as text) like ? || '%' order by run.id desc limit ?
"""
TRIALS = """
    select id, 'run ' || run_id || ': ' || strategy || ', ' || coalesce(status, 'proposed')
    from trial where cast(id as text) like ? || '%' order by id desc limit ?
"""


def latest_runs(file: Path, start: str) -> Iterator[tuple[int, str]]:
    """Yields (id, description) of the runs whose id begins with the digits ``start``, highest id first.

    For shell completion: 50 (LISTED) at most; "" stands for every run. Raises sqlite3.Error for a file that
    is not a results database.
    """
    for run in _matching(file, RUNS, start):
        status = present_status(run["status"], json.loads(run["process"] or "null"))
        yield run["id"], f"{run['problem']}, {run['target']}, {status}"


def latest_trials(file: Path, start: str) -> Iterator[tuple[int, str]]:
    """Yields (id, "run, strategy, status") of the trials whose id begins with ``start``, highest id first.

    For shell completion: 50 (LISTED) at most. Raises sqlite3.Error for a file that is not a results database.
    """
    yield from map(tuple, _matching(file, TRIALS, start))


def _matching(file: Path, query: str, start: str) -> Iterator[sqlite3.Row]:
    if start and not start.isdigit():
        return
    uri = f"file:{quote(str(file.absolute()))}?mode=ro"
    with contextlib.closing(sqlite3.connect(uri, timeout=BUSY_LIMIT_S, uri=True)) as connection:
        connection.row_factory = sqlite3.Row
        yield from connection.execute(query, (start, LISTED))
