"""The content of a report: the best result of each problem, and runs with their trials."""

import datetime
from collections.abc import Iterable
from dataclasses import dataclass

from tuner.analysis.many_shapes.time_matrix import TimeMatrix
from tuner.analysis.selected_result import SelectedResult
from tuner.core.candidate import Value
from tuner.core.pass_seconds import PassSeconds
from tuner.core.run_groups import RunGroup
from tuner.core.runs import Counts, Run, StoredTrial

TRIALS_SHOWN = 6000  # listed and drawn on one page, all runs together: about 3 MB of HTML
TRIALS_SHOWN_OF_RUN = 300  # the least limit per run, however many runs there are


@dataclass(frozen=True)
class BestKnown:
    """The best result of one problem on one machine and target, with its run."""

    selected: SelectedResult
    run: Run  # of the best trial
    passes: tuple[PassSeconds, ...] = ()  # of compiling the best trial again; () if not requested


@dataclass(frozen=True)
class ReportedRun:
    """One run with all its trials."""

    run: Run
    counts: Counts
    trials: tuple[StoredTrial, ...]  # by number


@dataclass(frozen=True)
class ReportedGroup:
    """A group of runs, with the times of its configurations on its problems."""

    group: RunGroup
    matrix: TimeMatrix


@dataclass(frozen=True)
class Report:
    """The content of a report's page: the best result of each problem, and runs with their trials."""

    best: tuple[BestKnown, ...]
    runs: tuple[ReportedRun, ...]  # the latest first
    runs_left_out: int
    version: str  # of the tuner that writes the page
    moment: datetime.datetime
    database_text: str = ""  # the --db option that the commands on the page need; "" for the default
    group: ReportedGroup | None = None  # that the runs belong to, where one is reported
    groups: tuple[RunGroup, ...] = ()  # that the runs belong to: their programs are drawn


def shown_trials(reported: ReportedRun, runs: int) -> tuple[StoredTrial, ...]:
    """Returns the trials of a run to list on a page of ``runs`` runs: the fastest first, untimed ones last.

    At most max(300, 6000 // ``runs``). If there are more: half of the list are the fastest
    trials, the other half an even sample of the rest. ``runs``: 1 or more.
    """
    limit = max(TRIALS_SHOWN_OF_RUN, TRIALS_SHOWN // runs)
    finished = sorted(reported.trials, key=_rank)
    if len(finished) <= limit:
        return tuple(finished)
    head, tail = finished[: limit // 2], finished[limit // 2 :]
    places = limit - len(head)
    return (*head, *(tail[index * len(tail) // places] for index in range(places)))


def _rank(trial: StoredTrial) -> tuple[float, int]:
    return float("inf") if trial.best_s is None else trial.best_s, trial.number


def choices_of(trial: StoredTrial) -> dict[str, Value]:
    """Returns the knobs of a trial with their values: knob -> value."""
    return dict(trial.record.candidate.choices)


def varying_knobs(trials: Iterable[StoredTrial]) -> dict[str, tuple[Value, ...]]:
    """Returns knob -> its values in ascending order, for knobs with more than one value among the trials."""
    values: dict[str, set[Value]] = {}
    for trial in trials:
        for name, value in choices_of(trial).items():
            values.setdefault(name, set()).add(value)
    return {name: tuple(sorted(found, key=_order)) for name, found in values.items() if len(found) > 1}


def _order(value: Value) -> tuple[bool, Value]:
    return isinstance(value, str), value  # numbers come before strings: Python cannot compare the two
