"""What a report tells of: the best of each problem, and runs with their trials."""

import datetime
from collections.abc import Iterable
from dataclasses import dataclass

from tuner.analysis.selected_result import SelectedResult
from tuner.core.candidate import Value
from tuner.core.pass_seconds import PassSeconds
from tuner.core.runs import Counts, Run, StoredTrial

TRIALS_SHOWN = 6000  # listed and drawn on one page, all runs together: 3 MB hold them
TRIALS_SHOWN_OF_RUN = 300  # at least, however many runs there are


@dataclass(frozen=True)
class BestKnown:
    """The best of one problem on one machine."""

    answer: SelectedResult
    run: Run  # that it comes from
    passes: tuple[PassSeconds, ...] = ()  # of compiling it again; () where nobody asked


@dataclass(frozen=True)
class ReportedRun:
    """One run with all its trials."""

    run: Run
    counts: Counts
    trials: tuple[StoredTrial, ...]  # by number


@dataclass(frozen=True)
class Report:
    """All that a page tells."""

    best: tuple[BestKnown, ...]
    runs: tuple[ReportedRun, ...]  # the latest first
    runs_left_out: int
    version: str  # of the tuner that writes it
    moment: datetime.datetime
    database_text: str = ""  # the flag that the commands on the page need as well


def shown_trials(reported: ReportedRun, runs: int) -> tuple[StoredTrial, ...]:
    """Returns the trials that a page of so many runs lists, the fastest first, failed ones last.

    Where they are too many: the fastest half of the places, and of the others every so many.
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
    """Returns the knobs of a trial."""
    return dict(trial.record.candidate.choices)


def varying_knobs(trials: Iterable[StoredTrial]) -> dict[str, tuple[Value, ...]]:
    """Returns the values of each knob that took more than one among finished trials, in order."""
    values: dict[str, set[Value]] = {}
    for trial in trials:
        for name, value in choices_of(trial).items():
            values.setdefault(name, set()).add(value)
    return {name: tuple(sorted(found, key=_order)) for name, found in values.items() if len(found) > 1}


def _order(value: Value) -> tuple[bool, Value]:
    return isinstance(value, str), value  # a number is not compared with a text
