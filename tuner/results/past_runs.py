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
from tuner.core.matmul import shape_text
from tuner.core.problem import (
    ALIGNMENTS,
    CACHES,
    LAYOUTS,
    OPERATIONS,
    require_choice,
)
from tuner.core.runs import RunQuery, StoredTrial, TaskQuery, TrialQuery
from tuner.core.serialization import parse_moment, with_zone
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
    """Returns the query of trials with these conditions: ``trial_query(dtype="f32", since="2026-01-31")``.

    Names are fields of TrialQuery and TaskQuery, or ``op``; raises UsageError for others and bad values.
    """
    return TrialQuery(**_conditions("history", TrialQuery, conditions))


def run_query(**conditions: Any) -> RunQuery:
    """Returns the query of runs with these conditions: ``run_query(op="matmul", status="done", limit=5)``.

    Names are fields of RunQuery and TaskQuery, or ``op``; raises UsageError for others and bad values.
    """
    return RunQuery(**_conditions("runs", RunQuery, conditions))


def _conditions(asker: str, query: type[TrialQuery | RunQuery], conditions: dict[str, Any]) -> dict[str, Any]:
    if "op" in conditions:  # as on the command line
        conditions["operation"] = conditions.pop("op")
    of_task = tuple(field.name for field in fields(TaskQuery))
    types = {each.name: each.type for each in (*fields(TaskQuery), *fields(query)) if each.name != "task"}
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
    """Returns the conditions on a problem, as ``Problem`` writes them; leaves out all other conditions.

    Conditions that are None are left out, too. Raises UsageError for a value that no problem has.
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

    Of trials sorted by creation a limit leaves the latest, the earliest of these first. ``query.best``: the
    best per problem, target, threads, machine. Raises UsageError for a bad run or status.
    """
    if query.run is not None:
        store.run(query.run)  # raises for a run that does not exist
    is_latest = query.limit is not None and query.sort == TrialQuery.sort
    stored = replace(query, sort=f"-{query.sort}") if is_latest else query
    if query.best:
        best = best_results(store, query)
        trials = store.named_trials([each.best.id for each in best.values()], stored)
    else:
        trials = store.trials(stored)
    return Trials(reversed(trials) if is_latest else trials)


def each_past_trial(store: "Store", query: TrialQuery) -> Iterable[StoredTrial]:
    """Returns what ``past_trials`` returns; without a limit and ``query.best`` not all are in memory at once.

    The trials are read from the store while the caller iterates. Raises as ``past_trials``.
    """
    if query.best or query.limit is not None:
        return past_trials(store, query)
    if query.run is not None:
        store.run(query.run)  # raises for a run that does not exist
    return store.each_trial(query)


def page_of_trials(store: "Store", query: TrialQuery, most: int) -> tuple[Trials, int]:
    """Returns at most ``most`` trials of a query, and how many match it; reads no others.

    In the order of time these are the latest, so that a table ends with what is new; else the first.
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
    """Returns the best run's result of each problem, target, threads and machine that ``trials`` has.

    The best is searched in all trials that match ``query``, without its limit: it may not be in ``trials``.
    """
    groups = set(map(group_of, trials))
    return tuple(best_results(store, replace(query, best=False), groups.__contains__).values())
