"""Packs compiled trials without a time into a bundle, in their predicted order, and imports the results."""

import datetime
import itertools
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tuner.core.errors import TunerError
from tuner.core.remote_results import PendingTrial
from tuner.core.requests import tune_command
from tuner.core.runs import Imported, TaskQuery, TrialQuery
from tuner.library.bundle.archive import pack, read_results
from tuner.search.cost_model.untimed import predicted_first
from tuner.targets.registry import real_backends
from tuner.version import __version__

if TYPE_CHECKING:
    from tuner.db.store import Store


EXAMPLE = TaskQuery(operation="matmul", shape="4096x4096x4096", dtype="f16")  # for hints without a task


def choose_pending(
    store: "Store", query: TrialQuery, chip: str = "", limit: int | None = None
) -> tuple[PendingTrial, ...]:
    """Returns trials without a time on a GPU, as ``best_first``, at most ``limit`` per problem.

    Leaves out repeated code, and trials found wrong on such a GPU. ``chip`` "": any. Raises TunerError if
    there is none.
    """
    found = (trial for trial in store.pending(query) if chip in ("", trial.program.chip))
    by_problem = itertools.groupby(
        predicted_first(found, real_backends().predicted), key=lambda trial: trial.problem
    )
    chosen = tuple(trial for _, group in by_problem for trial in itertools.islice(group, limit))
    if not chosen:
        target = f"simulator:{chip}" if chip else "simulator"
        advice = tune_command(replace(EXAMPLE if query.task.shape is None else query.task, target=target))
        raise TunerError("no compiled trial waits for a time", advice)
    return chosen


def packed(trials: tuple[PendingTrial, ...], seed: int) -> bytes:
    """Returns a bundle of compiled trials as the bytes of a zip file; ``seed`` is that of the test inputs."""
    return pack(trials, seed, __version__, datetime.datetime.now(datetime.UTC))


def import_file(store: "Store", path: Path) -> Imported:
    """Stores a results file; returns the numbers. Raises UsageError, also for unknown trials."""
    return store.import_results(read_results(path))


@contextmanager
def passing_bundle(
    store: "Store", trials: tuple[PendingTrial, ...], seed: int, done: Callable[[Imported], None]
) -> Iterator[Path]:
    """Gives a ``with`` block a bundle's path; stores ``PATH.results.jsonl``, then calls ``done``."""
    with tempfile.TemporaryDirectory(prefix="tuner-") as folder:
        path = Path(folder) / "pending.bundle"
        path.write_bytes(packed(trials, seed))
        try:
            yield path
        finally:
            results = path.with_name(f"{path.name}.results.jsonl")
            if results.exists():
                done(import_file(store, results))
