"""The commands to type next, where a question has no answer yet."""

import shlex

from tuner.core.problem import BATCH_MATMUL
from tuner.core.runs import DatabaseInfo, RunQuery, TrialQuery

ASKING = {"trial": "tuner history", "run": "tuner runs"}  # what lists them
PLAIN = {
    "dtype": "f32",
    "layout": "nn",
    "epilogue": "none",
    "output": "",
    "threads": 1,
    "target": None,
    "strategy": None,
}


def tune_command(query: TrialQuery | RunQuery) -> str:
    """Returns ``tuner tune matmul 64x64x64 --dtype f64``: with each flag whose value is not the usual one."""
    operation = query.operation or "matmul"
    example = "8x512x512x512" if operation == BATCH_MATMUL else "512x512x512"
    words = ["tuner", "tune", operation, query.shape or example]
    for name, plain in PLAIN.items():
        value = getattr(query, name, None)  # a question about runs names no strategy
        if value is not None and value != plain:
            words += [f"--{name}", str(value)]
    return shlex.join(words)


def nothing_matches(query: TrialQuery | RunQuery, noun: str, database: DatabaseInfo) -> str:
    """Returns what to type where no trial or run is as asked, of those that the database has."""
    stored = {"trial": database.trials, "run": database.runs}[noun]
    if not stored:
        return f"no history yet in {database.url}; begin with: {tune_command(query)}"
    count = f"{stored} {noun}" + "s" * (stored > 1)
    return f"no {noun} matches; {count} without conditions: {ASKING[noun]}"
