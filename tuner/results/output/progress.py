"""Live progress of a run on stderr: a line updated in place on a terminal, else plain lines.

``progress`` gives an observer of events: LiveProgress on a terminal, PlainProgress elsewhere.
"""

import contextlib
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from tuner.core.errors import error_lines
from tuner.core.problem import Problem
from tuner.core.round_quality import NOISE_LIMIT
from tuner.core.runs import RunSettings
from tuner.core.serialization import count_text, seconds_text
from tuner.results.output.formatting import (
    feasible_text,
    gflop_per_s,
    initial_configurations_text,
    one_line,
    speed_text,
)
from tuner.results.output.run_result import measured_text
from tuner.tuning import events
from tuner.tuning.budget import TOP_TRIALS, remeasurement_s

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID


PLAIN_EVERY_S = 5.0  # at most one line in this time, so that the log of a long run stays readable
LEAST_BAR = 5  # columns of a bar next to a long line, with the space after it
COMPILING = "compiling candidates"
COMPILING_INITIAL = "compiling the initial configurations"
SELECTING = "selecting the result"
DOING: Mapping[type, str] = {  # event -> what a run does after it, until its next trial ends
    events.BaselineStarted: "timing the baseline",
    events.FailedAlike: SELECTING,
    events.SpaceExhausted: SELECTING,
    events.RooflineStarted: "measuring what this machine can do",
    events.RemeasurementStarted: "timing the best again",
    events.NoiseMeasured: SELECTING,
}
FEW_FEASIBLE = 200  # so many configurations a short search tries: then they are its total
PINNED_HINT = "on cores of their own they do not wait for one another: taskset -c 0 tuner tune ..."
SEARCH_ENDS = (
    events.FailedAlike,
    events.SpaceExhausted,
    events.RooflineStarted,
    events.RemeasurementStarted,
)
SAID_ELSEWHERE = (events.BaselineMeasured, events.RemeasurementStarted, events.NoiseMeasured)


@contextlib.contextmanager
def progress() -> Iterator[events.Observer]:
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
        self._started: events.RunStarted | None = None
        self._trials = SlowLines()

    def __call__(self, event: events.Event) -> None:
        if isinstance(event, events.RunStarted):
            self._started = event
        if not isinstance(event, events.TrialDone):
            for line in event_line(event, _settings_of(self._started)).splitlines():
                print_line(line)
            return
        assert self._started is not None
        self._trials.print(trial_line(event, self._started))


class SlowLines:
    """Prints lines, at most one every PLAIN_EVERY_S seconds; lines in between are dropped."""

    def __init__(self) -> None:
        self._printed_s = time.monotonic()

    def print(self, line: str) -> None:
        if time.monotonic() - self._printed_s >= PLAIN_EVERY_S:
            self._printed_s = time.monotonic()
            print_line(line)


class LiveProgress:
    """Observer that updates one line in place; events that the printed result lacks are printed above it."""

    def __init__(self, console: "Console", bar: "Progress") -> None:
        self._console = console
        self._bar = bar
        self._started: events.RunStarted | None = None
        self._task: TaskID | None = None
        self._is_searching = True

    def __call__(self, event: events.Event) -> None:
        if isinstance(event, events.RunStarted):
            self._started = event
            self._is_searching = True
            if self._task is not None:  # of the previous run: tuning a program starts several runs
                self._bar.remove_task(self._task)
            self._task = self._bar.add_task(compiling_text(event), total=1.0)
        if not isinstance(event, events.TrialDone):
            self._show_phase(event)
            for line in _lasting_line(event, _settings_of(self._started)).splitlines():
                # the hint of MachineBusy is a command to copy: a line feed of rich would cut it in two
                self._console.print(
                    one_line(line), markup=False, soft_wrap=isinstance(event, events.MachineBusy)
                )
            return
        assert self._started is not None
        assert self._task is not None
        done = share_done(event, self._started)
        columns = self._console.width - LEAST_BAR
        line = one_line(trial_line(event, self._started, columns))
        self._bar.update(self._task, completed=done, description=line)

    def _show_phase(self, event: events.Event) -> None:
        if self._task is None or self._started is None:
            return
        self._is_searching = self._is_searching and not isinstance(event, SEARCH_ENDS)
        phase = DOING.get(type(event), "")
        if isinstance(event, events.BaselineMeasured | events.BaselineFailed):
            phase = compiling_text(self._started) if self._is_searching else SELECTING
        if phase:
            self._bar.update(self._task, description=phase)


def _settings_of(started: events.RunStarted | None) -> RunSettings | None:
    if started is None:
        return None
    return started.settings


def compiling_text(started: events.RunStarted) -> str:
    """Returns the progress text until a run's first trial ends: "compiling candidates".

    Or "compiling the initial configurations" if the run has some; for a resumed run with trials "going on
    after 12 trials".
    """
    if started.proposed_before:
        return f"going on after {count_text(started.proposed_before, 'trial')}"
    if started.settings.first:
        return COMPILING_INITIAL
    return COMPILING


def _lasting_line(event: events.Event, settings: RunSettings | None) -> str:
    """Returns the text of an event that a terminal keeps above its moving line.

    "" for an event that the moving line or the printed result shows.
    """
    if isinstance(event, SAID_ELSEWHERE):
        return ""
    if isinstance(event, events.RunStarted):
        return _run_line(replace(event, settings=replace(event.settings, first=())))
    return event_line(event, settings)


def event_line(event: events.Event, settings: RunSettings | None) -> str:
    """Returns an event of a run as one or more lines; ``settings``: the run's, None before RunStarted."""
    match event:
        case events.RunStarted():
            return _run_line(event)
        case (
            events.MachineBusy()
            | events.CompilesAgain()
            | events.BaselineStarted()
            | events.RooflineStarted()
        ):
            return _start_line(event)
        case events.BaselineMeasured(baseline, trust):
            assert settings is not None
            reached = _time_and_speed(settings.problem, baseline.measurement.median_s)
            # whether it is reliable is not known yet: noise is measured at the end; the result has the reason
            doubt = f", {trust.word}" if trust.unreliable else ""
            return f"baseline: {baseline.name} {reached}{doubt}"
        case events.BaselineFailed(reason):
            return f"baseline: not measured: {reason}"
        case events.FailedAlike() | events.SpaceExhausted():
            return _search_end_line(event)
        case events.RemeasurementStarted(trials):
            return f"final re-measurement: timing the best {trials} again, interleaved"
        case events.NoiseMeasured(noise):
            return _noise_line(noise)
        case events.TrialRefuted() | events.RoundDisturbed() | events.RoundLost():
            return _lost_line(event)
        case events.TrialDone():
            return f"trial {event.trial}: {event.record.status}"
    return _waiting_line(event)


def _noise_line(noise: float) -> str:
    if noise <= NOISE_LIMIT:
        return f"noise floor: {noise:.1%}"
    # how far they differ is the reason why the result is unreliable, which is printed with the result
    return f"noise floor: none, times of the same code differ by more than {NOISE_LIMIT:.0%}"


def _search_end_line(event: events.FailedAlike | events.SpaceExhausted) -> str:
    if isinstance(event, events.FailedAlike):
        failure = event.failure
        return f"search: ended: all {event.trials} trials failed at {failure.stage.value}: {failure.reason}"
    of = ""
    if event.is_sample:
        of = " of the sample"
    if event.feasible == 1:
        return f"search: the one feasible configuration{of} has been tried"
    return f"search: all {event.feasible} feasible configurations{of} have been tried"


def _lost_line(event: events.TrialRefuted | events.RoundDisturbed | events.RoundLost) -> str:
    if isinstance(event, events.TrialRefuted):
        return f"trial {event.trial}: failed {event.failure.reason}"
    if isinstance(event, events.RoundDisturbed) and event.is_repeated:
        return "final re-measurement: disturbed, timing once more"
    if isinstance(event, events.RoundDisturbed):
        return "final re-measurement: disturbed, the order of earlier times is kept"
    return "final re-measurement: lost, no times"  # the result has the reason


def _waiting_line(
    event: events.WaitsForNode | events.WaitsForLock | events.LockWaitEnded | events.WaitedForLock,
) -> str:
    match event:
        case events.WaitsForNode(why):
            return f"waiting for the fleet: {why}"
        case events.WaitsForLock(who, has_budget):
            goes_by = "; the budget goes by" if has_budget else ""
            return f"waiting for {who}: it times on the same device{goes_by}"
        case events.LockWaitEnded(who):
            return f"the budget is spent: times next to {who}"
    line = f"note: {event.waited_s:.0f} of {event.elapsed_s:.0f} s went by waiting for other tuners"
    return f"{line}\n{error_lines('', PINNED_HINT)}"


def _run_line(event: events.RunStarted) -> str:
    text = f"run {event.run}: {event.settings.problem.key}, {event.settings.target}, "
    text += f"{count_text(event.settings.threads, 'thread')} on {event.machine.name}; "
    text += feasible_text(event.feasible, event.cartesian)
    origins = initial_configurations_text(event.settings.first or ())
    first = f"initial configurations: {origins}" if origins else ""
    if event.proposed_before:
        first = f"going on after {event.proposed_before} trials"
    notes = "".join(f"\nnote: {note}" for note in event.notes)
    if first:
        return f"{text}; {first}{notes}"
    return f"{text}{notes}"


def _start_line(
    event: events.MachineBusy | events.CompilesAgain | events.BaselineStarted | events.RooflineStarted,
) -> str:
    if isinstance(event, events.MachineBusy):
        return _busy_line(event)
    if isinstance(event, events.BaselineStarted | events.RooflineStarted):
        return ""  # its result has a line
    return f"tuner changed since: compiling its {event.trials} trials again, to see that the code is the same"


def _busy_line(event: events.MachineBusy) -> str:
    load = event.load
    verb = "is" if event.processors == 1 else "are"
    busy = f"{load.busy:.1f} of {count_text(event.processors, 'processor')} {verb} busy with other programs"
    stolen = f"the hypervisor gives {load.stolen:.1f} of {event.processors} away"
    what = stolen if load.stolen > load.busy else busy
    hint = error_lines("", f"once it is idle: tuner tune --resume {event.run} --retime")
    return f"note: {what}; times will be unreliable\n{hint}"


def trial_line(event: events.TrialDone, started: events.RunStarted, columns: int | None = None) -> str:
    """Returns a progress line: numbers of trials, best time so far, estimated time left.

    ``columns``: the width to fit into (None: any); less important parts are left out first.
    """
    counts = event.counts
    left_s = time_left_s(event, started)
    done = event.number + 1
    trials = count_text(done, "trial")
    if started.settings.trials is not None or started.feasible <= FEW_FEASIBLE:
        trials = f"{done}/{started.most_trials} trials"
    tally = f"{measured_text(counts)}, {counts.failed} failed"
    reused = f", {counts.reused} reused" if counts.reused else ""
    best = speed = doubt = ""
    if event.best is not None:
        assert event.best.median_s is not None
        best = f"; best {seconds_text(event.best.median_s)}"
        speed = f" ({speed_text(gflop_per_s(event.best.problem, event.best.median_s))})"
        # the reason is long, and in the result
        doubt = " (unreliable)" if event.best_reliability.unreliable else ""
    left = f"; {left_s:.0f} s left" if left_s else ""
    same = " (same code)" if reused else ""  # as that of a trial of this run or an earlier one
    forms = (
        f"{trials}: {tally}{reused}{same}{best}{speed}{doubt}{left}",
        f"{trials}: {tally}{reused}{best}{speed}{doubt}{left}",
        f"{trials}: {tally}{best}{doubt}{left}",
        f"{trials}{best}{doubt}{left}",
    )
    return next((form for form in forms if columns is None or len(form) <= columns), f"{trials}{left}")


def _time_and_speed(problem: Problem, median_s: float) -> str:
    return f"{seconds_text(median_s)} ({speed_text(gflop_per_s(problem, median_s))})"


def time_left_s(event: events.TrialDone, started: events.RunStarted) -> float | None:
    """Returns the estimated seconds until a run ends, its final re-measurement included.

    It ends when all configurations are tried, or by its limit of trials or of time. None for a run without
    limits and with too many configurations to be tried.
    """
    limits = started.settings
    if limits.trials is None and limits.budget_s is None and started.feasible > FEW_FEASIBLE:
        return None
    done = event.number + 1
    searched_s = event.elapsed_s - started.remeasured_s
    search_s = searched_s / done * started.most_trials
    left_s = search_s - searched_s
    if event.counts.measured:  # else nothing is timed here
        left_s += remeasurement_s(search_s, min(TOP_TRIALS, started.most_trials))
    if limits.budget_s is not None:
        left_s = min(left_s, limits.budget_s - searched_s)
    return max(0.0, left_s)


def share_done(event: events.TrialDone, started: events.RunStarted) -> float:
    """Returns how much of the run's search is done, by trials or by its budget of time, 0 to 1."""
    share = (event.number + 1) / started.most_trials
    budget_s = started.settings.budget_s
    if budget_s is not None:
        share = max(share, (event.elapsed_s - started.remeasured_s) / budget_s)
    return min(1.0, share)


def print_line(line: str) -> None:
    """Prints one line on stderr, with control characters shown."""
    print(one_line(line), file=sys.stderr, flush=True)
