"""Past runs and past trials that meet a user's conditions; trials convert to a pandas.DataFrame."""

import datetime
import importlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from tuner.core.dtypes import INPUT_DTYPES, OUTPUTS, SUM_DTYPES, dtype_name
from tuner.core.epilogues import EPILOGUES
from tuner.core.errors import UsageError, unknown_value
from tuner.core.fusions import QUANTIZED
from tuner.core.problem import (
    ALIGNMENTS,
    CACHES,
    LAYOUTS,
    OPERATIONS,
    require_choice,
)
from tuner.core.problem_text import shape_text
from tuner.core.queries import RunQuery, TaskQuery, TrialQuery
from tuner.core.serialization import parse_moment, with_zone
from tuner.core.trials import StoredTrial
from tuner.core.typed_arguments import typed
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
PROBLEM_OPTIONS = {  # condition -> allowed values
    "operation": (*OPERATIONS, QUANTIZED),
    "dtype": tuple(INPUT_DTYPES),
    "layout": LAYOUTS,
    "epilogue": tuple(EPILOGUES),
    "output": ("", *OUTPUTS),
    "align": ALIGNMENTS,
    "cache": CACHES,
}
ASKED_TYPES: Mapping[str, Any] = {  # of conditions that have more forms than the fields of a query
    "shape": str | tuple[int, ...] | None,
    "dtype": object,  # numpy's types as well
    "output": object,
    "since": datetime.datetime | str | None,
}


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


def trial_query(**conditions: Any) -> TrialQuery:
    """Returns the query for trials with these conditions: ``trial_query(dtype="f32", since="2026-01-31")``.

    Names are ``op`` and the fields of TrialQuery and TaskQuery. Raises UsageError for other names and for
    values of a wrong type or form.
    """
    return TrialQuery(**_conditions("history", TrialQuery, conditions))


def run_query(**conditions: Any) -> RunQuery:
    """Returns the query for runs with these conditions: ``run_query(op="matmul", status="done", limit=5)``.

    Names are ``op`` and the fields of RunQuery and TaskQuery. Raises UsageError for other names and for
    values of a wrong type or form.
    """
    return RunQuery(**_conditions("runs", RunQuery, conditions))


def _conditions(asker: str, query: type[TrialQuery | RunQuery], conditions: dict[str, Any]) -> dict[str, Any]:
    if "op" in conditions:  # as on the command line
        conditions["operation"] = conditions.pop("op")
    of_task = tuple(field.name for field in fields(TaskQuery))
    types = {
        condition.name: condition.type
        for condition in (*fields(TaskQuery), *fields(query))
        if condition.name != "task"
    }
    types |= {name: asked for name, asked in ASKED_TYPES.items() if name in types}
    for name, given in conditions.items():
        if name not in types:
            raise unknown_value(asker, name, tuple(types))
        conditions[name] = typed(name, given, types[name])
    if isinstance(conditions.get("shape"), tuple | list):
        conditions["shape"] = "x".join(map(str, conditions["shape"]))
    conditions |= problem_conditions(conditions)
    match conditions.get("since"):
        case str(text):
            conditions["since"] = parse_moment(text)
        case datetime.datetime() as moment:
            conditions["since"] = with_zone(moment)
    task = TaskQuery(**{name: conditions.pop(name) for name in of_task if name in conditions})
    return {"task": task, **conditions}


def problem_conditions(conditions: Mapping[str, Any]) -> dict[str, Any]:
    """Returns those of the conditions that are on the problem, with values as ``Problem`` writes them.

    Leaves out other conditions and those that are None. Raises UsageError for a value that no problem has.
    """
    options = {name: conditions[name] for name in PROBLEM_OPTIONS if conditions.get(name) is not None}
    for name in {"dtype", "output"} & options.keys():
        options[name] = dtype_name(options[name])
    if options.get("output") in SUM_DTYPES:
        options["output"] = ""  # a Problem has "" where C has the type of the sums
    for name, given in options.items():
        require_choice(name, given, PROBLEM_OPTIONS[name])
    if conditions.get("shape") is not None:
        options["shape"] = shape_text(options.get("operation"), conditions["shape"])
    return options


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
    stored = replace(query, sort=f"-{query.sort}") if is_latest else query
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
