"""Live progress on stderr: a line updated in place on a terminal; otherwise plain lines at intervals."""

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tuner.core.errors import error_lines
from tuner.core.problem import Problem
from tuner.core.reliability import Reliability
from tuner.core.runs import RunSettings
from tuner.core.time_text import seconds_text
from tuner.output.formatting import count_text, first_points_text, one_line, speed_text
from tuner.output.json_documents import gflop_per_s
from tuner.output.result import measured_text
from tuner.tuning.events import (
    BaselineFailed,
    BaselineMeasured,
    Event,
    MachineBusy,
    NoiseMeasured,
    Observer,
    RemeasurementStarted,
    RoundLost,
    RunStarted,
    TrialDone,
    WaitsForLock,
    WaitsForNode,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

PLAIN_EVERY_S = 5.0  # at most one line in this time, so that the log of a long run stays readable


@contextlib.contextmanager
def progress() -> Iterator[Observer]:
    """Context manager: gives an observer that prints a run's progress on stderr.

    On a terminal one line is updated in place; otherwise lines are printed, of trials at most one in 5 s.

    Returns:
        An observer for ``observe`` of ``tune`` and ``resume``, valid inside the ``with`` block.

    Raises:
        OSError: stderr cannot be written to.

    Example:
        >>> import tuner
        >>> with tuner.progress() as show:
        ...     run = tuner.tune(tuner.Matmul(64, 64, 64), target="cpu", trials=2, observe=show)
        >>> run.run.status
        'done'
    """
    if not sys.stderr.isatty():
        yield PlainProgress()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    console = Console(stderr=True, highlight=False)
    columns = (BarColumn(bar_width=24), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=console, transient=True) as bar:
        yield LiveProgress(console, bar)


class PlainProgress:
    """Observer that prints plain lines; for finished trials at most one per PLAIN_EVERY_S (5) seconds."""

    def __init__(self) -> None:
        self._settings: RunSettings | None = None
        self._printed_s = time.monotonic()

    def __call__(self, event: Event) -> None:
        """Prints the event; of finished trials at most one per PLAIN_EVERY_S (5) seconds."""
        if isinstance(event, RunStarted):
            self._settings = event.settings
        if not isinstance(event, TrialDone):
            for line in event_line(event, self._settings).splitlines():
                print(one_line(line), file=sys.stderr, flush=True)
            return
        assert self._settings is not None
        if time.monotonic() - self._printed_s >= PLAIN_EVERY_S:
            self._printed_s = time.monotonic()
            print(one_line(trial_line(event, self._settings)), file=sys.stderr, flush=True)


class LiveProgress:
    """Observer that updates one line in place; events other than finished trials scroll above that line."""

    def __init__(self, console: "Console", bar: "Progress") -> None:
        self._console = console
        self._bar = bar
        self._settings: RunSettings | None = None
        self._task: TaskID | None = None

    def __call__(self, event: Event) -> None:
        """Updates the line for a finished trial; prints any other event above the line."""
        if isinstance(event, RunStarted):
            self._settings = event.settings
            if self._task is not None:  # of the previous run: tuning a program starts several runs
                self._bar.remove_task(self._task)
            self._task = self._bar.add_task("starting", total=1.0)
        if not isinstance(event, TrialDone):
            for line in event_line(event, self._settings).splitlines():
                # its hint is a command to copy: the terminal may wrap it, a line feed would cut it
                self._console.print(one_line(line), markup=False, soft_wrap=isinstance(event, MachineBusy))
            return
        assert self._settings is not None
        assert self._task is not None
        done = share_done(event, self._settings)
        self._bar.update(self._task, completed=done, description=one_line(trial_line(event, self._settings)))


def event_line(event: Event, settings: RunSettings | None = None) -> str:
    """Returns an event of a run as text, one or two lines.

    ``settings`` are those of the run; None before its RunStarted event, which has them.
    """
    match event:
        case RunStarted():
            text = f"run {event.run}: {event.settings.problem.key}, {event.settings.target}, "
            text += f"{count_text(event.settings.threads, 'thread')} on {event.machine.name}; "
            text += f"{event.feasible} of {event.cartesian} combinations are feasible"
            first = first_points_text(event.settings.first or ())
            if event.proposed_before:
                first = f"going on after {event.proposed_before} trials"
            empty = "".join(f"\nnote: {why}" for why in event.empty)
            return f"{text}; {first}{empty}" if first else f"{text}{empty}"
        case MachineBusy():
            return _busy_line(event)
        case BaselineMeasured(baseline, trust):
            assert settings is not None
            pace = _pace(settings.problem, baseline.measurement.median_s)
            return f"baseline: {baseline.name} {pace}{_doubt(trust)}"
        case BaselineFailed(reason):
            return f"baseline: not measured: {reason}"
        case RemeasurementStarted() | NoiseMeasured() | RoundLost():
            return _remeasurement_line(event)
        case WaitsForLock(who):
            return f"waiting for {who}: it times on the same device"
        case WaitsForNode(why):
            return f"waiting for the fleet: {why}"
        case TrialDone():
            return f"trial {event.trial}: {event.record.status}"


def _busy_line(event: MachineBusy) -> str:
    """Returns why the processors are busy and, on a second line, which command to type once they are idle."""
    load = event.load
    verb = "is" if event.processors == 1 else "are"
    busy = f"{load.busy:.1f} of {count_text(event.processors, 'processor')} {verb} busy with other programs"
    stolen = f"the hypervisor gives {load.stolen:.1f} of {event.processors} away"
    what = stolen if load.stolen > load.busy else busy
    hint = error_lines("", f"once it is idle: tuner tune --resume {event.run} --retime")
    return f"note: {what}; times will be unreliable\n{hint}"


def _remeasurement_line(event: RemeasurementStarted | NoiseMeasured | RoundLost) -> str:
    """Returns an event of the final re-measurement as one line."""
    match event:
        case RemeasurementStarted(trials):
            return f"final re-measurement: timing the best {trials} again, interleaved"
        case NoiseMeasured(noise):
            return f"noise floor: {noise:.2%}"
        case RoundLost(reason):
            return f"final re-measurement: lost, no times: {reason}"


def trial_line(event: TrialDone, settings: RunSettings) -> str:
    """Returns a progress line: numbers of trials, best time so far, estimated time left."""
    counts, total = event.counts, settings.trials
    done = event.number + 1
    text = f"{done}{'' if total is None else f'/{total}'} trials: "
    text += f"{measured_text(counts)}, {counts.failed} failed"
    if counts.reused:
        text += f", {counts.reused} reused (same code)"  # as that of a trial of this run or an earlier one
    if event.best is not None:
        assert event.best.median_s is not None
        text += f"; best {_pace(event.best.problem, event.best.median_s)}{_doubt(event.best_reliability)}"
    left_s = time_left_s(event, settings)
    return text + (f"; {left_s:.0f} s left" if left_s else "")


def _pace(problem: Problem, median_s: float) -> str:
    return f"{seconds_text(median_s)} ({speed_text(gflop_per_s(problem, median_s))})"


def _doubt(trust: Reliability) -> str:
    """Returns the mark of a time that a disturbed machine gave; the noise of others is not known yet."""
    return f", {trust.text}" if trust.unreliable else ""


def time_left_s(event: TrialDone, settings: RunSettings) -> float | None:
    """Returns the estimated seconds until a run reaches its limit of trials or time; None if it has none."""
    done = event.number + 1
    left = []
    if settings.trials is not None:
        left.append((settings.trials - done) * event.elapsed_s / done)
    if settings.budget_s is not None:
        left.append(settings.budget_s - event.elapsed_s)
    return max(0.0, min(left)) if left else None


def share_done(event: TrialDone, settings: RunSettings) -> float:
    """Returns how much of the run's limit is used, 0 to 1: of trials or time, whichever is more.

    0 for a run without a limit.
    """
    spent = [0.0]
    if settings.trials is not None:
        spent.append((event.number + 1) / settings.trials)
    if settings.budget_s is not None:
        spent.append(event.elapsed_s / settings.budget_s)
    return min(1.0, max(spent))
