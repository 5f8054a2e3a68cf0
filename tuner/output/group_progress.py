"""Live progress of a group of runs on stderr: a table on a terminal; otherwise plain lines at intervals."""

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tuner.core.record import Record
from tuner.core.run_groups import RunGroup
from tuner.core.time_text import seconds_text
from tuner.output.formatting import count_text, one_line, speed_text
from tuner.output.json_documents import gflop_per_s
from tuner.output.progress import PLAIN_EVERY_S, event_line
from tuner.tuning.events import BaselineMeasured, NoiseMeasured, RemeasurementStarted, TrialDone
from tuner.tuning.many_shapes.group_events import GroupEvent, GroupObserver, GroupStarted, RunEvent

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

FREE_LINES = 6  # of the terminal, around the table


class GroupState:
    """What is known of a group's problems while the group runs: number of trials and best record of each."""

    def __init__(self, group: RunGroup) -> None:
        self.group = group
        self.trials = [0] * len(group.runs)
        self.best: list[Record | None] = [None] * len(group.runs)
        self.proposed = 0
        self.elapsed_s = group.seconds

    def take(self, event: RunEvent) -> None:
        """Updates the state by an event of one of the runs."""
        self.proposed, self.elapsed_s = event.proposed, event.elapsed_s
        if isinstance(event.event, TrialDone):
            self.trials[event.place] = event.event.counts.proposed
            self.best[event.place] = event.event.best

    @property
    def total_s(self) -> float | None:
        """Returns the sum of the best times so far, each times its count; None while one is missing."""
        total_s = 0.0
        for run, best in zip(self.group.runs, self.best, strict=True):
            if best is None or best.median_s is None:
                return None
            total_s += best.median_s * (1 if run.group is None else run.group.count)
        return total_s

    @property
    def line(self) -> str:
        """Returns one line: trials of the budget, problems with a time, total time, seconds."""
        limits = self.group.settings
        of_all = "" if limits.trials is None else f"/{limits.trials}"
        timed = sum(best is not None for best in self.best)
        text = f"{self.proposed}{of_all} trials: {timed} of {count_text(len(self.best), 'problem')} timed"
        if self.total_s is not None:
            text += f"; total {seconds_text(self.total_s)}"
        of_budget = "" if limits.budget_s is None else f" of {limits.budget_s:.0f}"
        return f"{text}; {self.elapsed_s:.0f}{of_budget} s"


@contextlib.contextmanager
def group_progress() -> Iterator[GroupObserver]:
    """Context manager: gives an observer that prints a group's progress on stderr.

    On a terminal a table with a row per problem is updated in place; otherwise lines are printed, of trials
    at most one in PLAIN_EVERY_S (5) seconds.
    """
    if not sys.stderr.isatty():
        yield PlainGroupProgress()
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True, highlight=False)
    with Live(console=console, transient=True, auto_refresh=False) as live:
        yield LiveGroupProgress(live)


def started_line(event: GroupStarted) -> str:
    """Returns the first line of a group: its problems, target, and what it begins with."""
    group, run = event.group, event.group.runs[0]
    text = f"group {group.id}: {count_text(len(group.runs), 'problem')}, {run.settings.target}, "
    text += f"{count_text(run.settings.threads, 'thread')} on {run.machine.name}; "
    text += f"{count_text(len(group.settings.columns), 'configuration')} to try on each"
    return text + (f"; going on after {event.proposed_before} trials" if event.proposed_before else "")


class PlainGroupProgress:
    """Observer that prints plain lines; for finished trials at most one per PLAIN_EVERY_S (5) seconds."""

    def __init__(self) -> None:
        self._state: GroupState | None = None
        self._printed_s = time.monotonic()

    def __call__(self, event: GroupEvent) -> None:
        """Prints the event; of finished trials at most one per PLAIN_EVERY_S (5) seconds."""
        if isinstance(event, GroupStarted):
            self._state = GroupState(event.group)
            _print(started_line(event))
            return
        assert self._state is not None
        self._state.take(event)
        if isinstance(event.event, TrialDone):
            if time.monotonic() - self._printed_s >= PLAIN_EVERY_S:
                self._printed_s = time.monotonic()
                _print(self._state.line)
            return
        line = _run_line(event, self._state)
        if line:
            _print(line)


class LiveGroupProgress:
    """Observer that updates a table in place; events other than finished trials scroll above the table."""

    def __init__(self, live: "Live") -> None:
        self._live = live
        self._state: GroupState | None = None

    def __call__(self, event: GroupEvent) -> None:
        """Updates the table for a finished trial; prints any other event above the table."""
        if isinstance(event, GroupStarted):
            self._state = GroupState(event.group)
            self._live.console.print(one_line(started_line(event)), markup=False)
            return
        assert self._state is not None
        self._state.take(event)
        line = "" if isinstance(event.event, TrialDone) else _run_line(event, self._state)
        if line:
            self._live.console.print(one_line(line), markup=False)
        rows = max(1, self._live.console.size.height - FREE_LINES)
        self._live.update(progress_table(self._state, rows), refresh=True)


def progress_table(state: GroupState, rows: int) -> "Table":
    """Returns the table of a group: the ``rows`` problems with the most time x count, the largest first."""
    from rich.table import Table

    table = Table(*("name", "problem", "count", "trials", "best", "GFLOP/s"), caption=state.line)
    weights = []
    for place, (run, best) in enumerate(zip(state.group.runs, state.best, strict=True)):
        count = 1 if run.group is None else run.group.count
        least_s = None if best is None else best.median_s
        weights.append((float("inf") if least_s is None else least_s * count, place))
    for _, place in sorted(weights, key=lambda pair: (-pair[0], pair[1]))[:rows]:
        table.add_row(*_cells(state, place))
    return table


def _cells(state: GroupState, place: int) -> tuple[str, ...]:
    run, best = state.group.runs[place], state.best[place]
    problem = run.settings.problem
    name, count = ("", 1) if run.group is None else (run.group.name, run.group.count)
    times = ("-", "-")
    if best is not None and best.median_s is not None:
        times = (seconds_text(best.median_s), speed_text(gflop_per_s(problem, best.median_s)))
    return (one_line(name), problem.key, str(count), str(state.trials[place]), *times)


def _run_line(event: RunEvent, state: GroupState) -> str:
    """Returns the line of an event of one run, after the problem; "" for what a table shows anyway."""
    run = state.group.runs[event.place]
    if isinstance(event.event, BaselineMeasured | NoiseMeasured):
        return ""
    line = event_line(event.event, run.settings).splitlines()[0]
    if isinstance(event.event, RemeasurementStarted):
        return f"{run.settings.problem.key}: {line}"
    return line


def _print(line: str) -> None:
    print(one_line(line), file=sys.stderr, flush=True)
