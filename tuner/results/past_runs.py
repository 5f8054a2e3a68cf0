"""Past runs and past trials of a query; trials convert to a pandas.DataFrame.

``Trials`` is the tuple that ``tuner.history`` returns. The functions below read it from the store: all
trials, one after another, or a page of a table.
"""

import importlib
import math
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tuner.core.errors import UsageError
from tuner.core.queries import RunQuery, TrialQuery
from tuner.core.trials import StoredTrial
from tuner.results.best_trials import RunResult, best_results, group_of
from tuner.results.output.json_documents import history_columns
from tuner.tuning.tuned_run import TunedRun, tuned_run

if TYPE_CHECKING:
    from tuner.db.store import Store


KNOB = "knob."  # prefix of a knob's column: a knob may have the name of another column
COLUMNS = (
    *("trial", "run", "op", "shape", "dtype", "output", "layout", "epilogue", "align", "cache"),
    *("target", "threads", "machine", "strategy", "status", "stage", "reason", "median_s"),
    *("early_stopped_after", "reliability", "unreliable", "stale", "created"),
)


class Trials(tuple[StoredTrial, ...]):
    """A tuple of stored trials with outcomes, convertible to tables."""

    def __repr__(self) -> str:
        """Returns one line: the number of trials, and the last one."""
        last = f", the last: {self[-1]!r}" if self else ""
        return f"Trials({len(self)} trials{last})"

    def to_frame(self) -> Any:
        """Returns the trials as a pandas.DataFrame: one line per trial, one column ``knob.NAME`` per knob.

        Returns:
            The table; its columns are the keys of the dictionaries that ``rows()`` returns.

        Raises:
            UsageError: pandas is not installed.

        Example:
            >>> import tuner
            >>> trials = tuner.history(run=1)
            >>> len(trials.to_frame()) == len(trials)
            True
        """
        try:
            pandas = importlib.import_module("pandas")
        except ImportError as error:
            raise UsageError("missing dependency 'pandas'", "pip install pandas") from error
        return pandas.DataFrame(self._columns())

    def _columns(self) -> dict[str, list[Any]]:
        columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
        for before, trial in enumerate(self):
            for name, value in _row(trial).items():
                columns.setdefault(name, [math.nan] * before).append(value)
            for column in columns.values():
                if len(column) == before:  # a knob that the trial's strategy does not have
                    column.append(math.nan)
        return columns

    def rows(self) -> list[dict[str, Any]]:
        """Returns one dictionary per trial: what was tried, where, and the outcome.

        Returns:
            Dictionaries with among others op, shape, target, machine, strategy, status, ``median_s`` in
            seconds per call (None: not timed), and ``knob.NAME`` for each knob that the trial's strategy has.

        Raises:
            Nothing: each dictionary has all keys, apart from those of knobs.

        Example:
            >>> import tuner
            >>> tuner.history(run=1).rows()[0]["shape"]
            '64x64x64'
        """
        return list(map(_row, self))


def _row(trial: StoredTrial) -> dict[str, Any]:
    columns = history_columns(trial) | {"created": trial.created}
    knobs = {f"{KNOB}{name}": value for name, value in trial.knobs.items()}
    return {name: columns[name] for name in COLUMNS} | knobs


def past_runs(store: "Store", query: RunQuery) -> tuple[TunedRun, ...]:
    """Returns the stored runs of a query, the latest first, each with trial counts and selected result."""
    return tuple(tuned_run(store, run.id) for run in store.matching_runs(query))


def past_trials(store: "Store", query: TrialQuery) -> Trials:
    """Returns the stored trials with outcomes that match a query, sorted and limited as the query says.

    If sorted by creation, a limit keeps the latest trials. ``query.best``: only the best trial per problem,
    target, threads and machine. Raises UsageError for an unknown run or status.
    """
    if query.run is not None:
        store.run(query.run)  # raises for a run that does not exist
    is_latest = query.limit is not None and query.sort == TrialQuery.sort
    stored = query
    if is_latest:
        stored = replace(query, sort=f"-{query.sort}")
    if query.best:
        best = best_results(store, query)
        trials = store.named_trials([result.best.id for result in best.values()], stored)
    else:
        trials = store.trials(stored)
    return Trials(reversed(trials) if is_latest else trials)


def each_past_trial(store: "Store", query: TrialQuery) -> Iterable[StoredTrial]:
    """Returns the trials that ``past_trials`` returns, read from the store while the caller iterates.

    With a limit or ``query.best`` all are read at once. Raises UsageError for an unknown run or status.
    """
    if query.best or query.limit is not None:
        return past_trials(store, query)
    if query.run is not None:
        store.run(query.run)  # raises for a run that does not exist
    return store.each_trial(query)


def page_of_trials(store: "Store", query: TrialQuery, most: int) -> tuple[Trials, int]:
    """Returns (trials, count): at most ``most`` trials of a query, and how many match the query in all.

    Sorted by creation, these are the latest trials, so that a table ends with the newest; else the first
    ones.
    """
    is_by_time = query.sort == TrialQuery.sort
    if query.best:  # one trial of each problem, target, machine and number of threads
        trials = past_trials(store, query)
        return Trials(trials[-most:] if is_by_time else trials[:most]), len(trials)
    if is_by_time:
        latest = past_trials(store, replace(query, sort=f"-{query.sort}", limit=most))
        return Trials(reversed(latest)), store.count_of_trials(query)
    return past_trials(store, replace(query, limit=most)), store.count_of_trials(query)


def best_results_among(store: "Store", query: TrialQuery, trials: Trials) -> tuple[RunResult, ...]:
    """Returns the best result for each combination of problem, target, threads and machine among ``trials``.

    All trials that match ``query`` without its limit are searched: the best may not be in ``trials``.
    """
    groups = set(map(group_of, trials))
    return tuple(best_results(store, replace(query, best=False), groups.__contains__).values())
