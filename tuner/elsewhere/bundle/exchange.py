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
from tuner.core.problem_text import tune_command
from tuner.core.queries import Imported, TaskQuery, TrialQuery
from tuner.core.remote_results import PendingTrial
from tuner.db.pending_trials import pending_trials
from tuner.db.remote_results import import_results
from tuner.elsewhere.bundle.archive import pack
from tuner.elsewhere.bundle.results_file import read_results
from tuner.gpu.cost_model.untimed import predicted_first
from tuner.targets.registry import real_backends
from tuner.version import __version__

if TYPE_CHECKING:
    from tuner.db.store import Store


EXAMPLE = TaskQuery(operation="matmul", shape="4096x4096x4096", dtype="f16")  # for hints without a task


def choose_pending(
    store: "Store", query: TrialQuery, chip: str = "", limit: int | None = None
) -> tuple[PendingTrial, ...]:
    """Returns compiled trials that were not timed on a GPU, by problem, the most promising first.

    ``limit``: at most so many per problem; ``chip``: of the code, "" for any. Repeated code, and trials found
    wrong on such a GPU, are left out. Raises TunerError if no trial is left.
    """
    pending = (trial for trial in pending_trials(store.database, query) if chip in ("", trial.program.chip))
    by_problem = itertools.groupby(
        predicted_first(pending, real_backends().predicted), key=lambda trial: trial.problem
    )
    chosen = tuple(trial for _, group in by_problem for trial in itertools.islice(group, limit))
    if not chosen:
        target = f"simulator:{chip}" if chip else "simulator"
        advice = tune_command(replace(EXAMPLE if query.task.shape is None else query.task, target=target))
        raise TunerError("no compiled trial waits for a time", advice)
    return chosen


def packed(trials: tuple[PendingTrial, ...], seed: int) -> bytes:
    """Returns a bundle of compiled trials as the bytes of a zip file.

    ``seed``: of the inputs that the candidates will be verified on.
    """
    return pack(trials, seed, __version__, datetime.datetime.now(datetime.UTC))


def import_file(store: "Store", path: Path) -> Imported:
    """Stores the results of a results file; returns how many runs and trials it added, how many were there.

    Raises UsageError for a damaged file, or results of trials that the database does not have.
    """
    return import_results(store.database, read_results(path))


@contextmanager
def passing_bundle(
    store: "Store", trials: tuple[PendingTrial, ...], seed: int, done: Callable[[Imported], None]
) -> Iterator[Path]:
    """Context manager: gives the path of a bundle; when it ends, imports the results file next to the bundle.

    ``done`` is called with the numbers of results imported, also after an exception; not if there are no
    results.
    """
    with tempfile.TemporaryDirectory(prefix="tuner-") as folder:
        path = Path(folder) / "pending.bundle"
        path.write_bytes(packed(trials, seed))
        try:
            yield path
        finally:
            results = path.with_name(f"{path.name}.results.jsonl")
            if results.exists():
                done(import_file(store, results))
