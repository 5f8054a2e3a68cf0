"""How long `tuner history --best --shape` takes on a database of a million trials, SQLite and PostgreSQL.

    python -m benchmarks.history --json --output benchmarks/results/history.json

The databases are made by benchmarks.history_rows, the server by ``elsewhere.fleet.local_fleet``. Timed are
the query with its conversion to values, in a process that has queried before, and the whole command with the
start of an interpreter.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.history_rows import SHAPES, write_history
from benchmarks.results_file import add_report_options, emit, report
from tuner.core.queries import TaskQuery, TrialQuery
from tuner.db.database import Database
from tuner.db.store import Store
from tuner.elsewhere.fleet.local_fleet import NoServerError, server
from tuner.results.past_runs import past_trials

SHAPE = SHAPES[0]
REPEATS = 21
COMMANDS = 5


def main() -> None:
    """Runs the benchmark."""
    options = _arguments()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        urls = {"sqlite": str(Path(folder, "history.db"))}
        try:
            urls["postgresql"] = stack.enter_context(server())
        except NoServerError as error:
            print(error, file=sys.stderr)
        rows = [_row(name, url, options.trials) for name, url in urls.items()]
    slowest_ms = max(row["best_query_ms"] for row in rows)
    settings = {"trials": options.trials, "shape": SHAPE, "repeats": REPEATS}
    document = report("history", settings, rows, {"best_query_ms": slowest_ms})
    emit(document | {"best_query_ms": slowest_ms}, options.json, options.output)


def _row(name: str, url: str, trials: int) -> dict[str, Any]:
    """Fills one database and times the query."""
    started_s = time.monotonic()
    database = Database.open(url)
    write_history(database, trials)
    database.close()
    written_s = time.monotonic() - started_s
    with Store.open(url) as store:
        best = TrialQuery(TaskQuery(shape=SHAPE), best=True)
        found = len(past_trials(store, best))
        best_ms = [_milliseconds(lambda: past_trials(store, best)) for _ in range(REPEATS)]
        fastest = TrialQuery(TaskQuery(shape=SHAPE), limit=10, sort="median")
        ten_fastest_ms = [_milliseconds(lambda: store.trials(fastest)) for _ in range(COMMANDS)]
        stored = store.info().trials
    command_ms = [_milliseconds(lambda: _command(url)) for _ in range(COMMANDS)]
    row = {
        "database": name,
        "trials": stored,
        "best_query_ms": round(median(best_ms), 2),
        "best_query_slowest_ms": round(max(best_ms), 2),
        "ten_fastest_ms": round(median(ten_fastest_ms), 2),
        "command_ms": round(median(command_ms), 1),
        "found": found,
        "written_s": round(written_s, 1),
        "load": os.getloadavg()[0],
    }
    print(f"{name}: {row['best_query_ms']} ms of {stored} trials", file=sys.stderr)
    return row


def _command(url: str) -> None:
    arguments = ("history", "--best", "--shape", SHAPE, "--db", url)
    subprocess.run([sys.executable, "-m", "tuner", *arguments], stdout=subprocess.DEVNULL, check=True)


def _milliseconds(work: Callable[[], object]) -> float:
    started_s = time.perf_counter()
    work()
    return 1e3 * (time.perf_counter() - started_s)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=1_000_000)
    add_report_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
