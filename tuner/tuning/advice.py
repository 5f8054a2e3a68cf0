"""Commands that a message suggests where the database has no matching trial or run."""

import shlex

from tuner.core.problem import BATCH_MATMUL, NUMPY_ALIGNMENT, WARM
from tuner.core.runs import DatabaseInfo, TaskQuery

ASKING = {"trial": "tuner history", "run": "tuner runs"}  # the command that lists them
FLAGS = {"output": "--output-dtype"}  # options that are not named as the field
PLAIN = {
    "dtype": "f32",
    "layout": "nn",
    "epilogue": "none",
    "output": "",
    "align": NUMPY_ALIGNMENT,
    "cache": WARM,
    "threads": 1,
    "target": None,
}


def tune_command(task: TaskQuery, strategy: str | None = None) -> str:
    """Returns the command that tunes a task's problem: ``tuner tune matmul 64x64x64 --dtype f64``.

    It has an option for each value that is not the default; an example replaces a missing shape.
    ``strategy``: name or file for ``--strategy``. For a group of operations it tunes a whole program.
    """
    if task.group:
        return "tuner tune PROGRAM.mlir"  # a group is tuned with the program that it is a part of
    operation = task.operation or "matmul"
    example = "8x512x512x512" if operation == BATCH_MATMUL else "512x512x512"
    options = ["tuner", "tune", operation, task.shape or example]
    for name, plain in PLAIN.items():
        value = getattr(task, name)
        if value is not None and value != plain:
            options += [FLAGS.get(name, f"--{name}"), str(value)]
    if strategy is not None:
        options += ["--strategy", strategy]
    return shlex.join(options)


def nothing_matches(command: str, noun: str, database: DatabaseInfo) -> str:
    """Returns the message for a query that matches no trial or run, with a hint on the next line.

    ``noun`` is "trial" or "run". The hint is ``command`` if the database has none at all, else the command
    that lists them.
    """
    stored = {"trial": database.trials, "run": database.runs}[noun]
    if not stored:
        return f"no history yet in {database.url}\nhint: {command}"
    count = f"{stored} {noun}" + "s" * (stored > 1)
    return f"no {noun} matches; {count} without conditions\nhint: {ASKING[noun]}"
