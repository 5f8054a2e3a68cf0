"""Live progress of a run or a campaign on stderr: updated in place on a terminal, else plain lines.

``progress`` and ``campaign_progress`` give an observer of events: LiveProgress and LiveCampaignProgress on a
terminal, PlainProgress and PlainCampaignProgress elsewhere. ``compile_progress`` shows the compilation of a
program's fusions.
"""

import contextlib
import math
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from tuner.core.errors import error_lines
from tuner.core.problem import Problem
from tuner.core.progress import (
    CompileEvent,
    CompileObserver,
    FusionEnded,
    FusionsFound,
    FusionStarted,
    WeightsPacked,
)
from tuner.core.records import Record
from tuner.core.requests import Campaign
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
    from rich.live import Live
    from rich.progress import Progress, TaskID
    from rich.table import Table


PLAIN_EVERY_S = 5.0  # at most one line in this time, so that the log of a long run stays readable
MIB = 1 << 20
NEARLY_DONE = 0.8  # of a compilation: a log gets no line of the rest
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
TABLE_HEADER = ("name", "problem", "count", "trials", "best", "GFLOP/s")  # of the live table of a campaign
LEAST_NAME = 24  # columns of a name, where a terminal is narrow
BORDERS = "\N{BOX DRAWINGS LIGHT VERTICAL}  "  # of a cell of the table, with its padding
FREE_LINES = 6  # of the terminal: three of the table's head, its end, its caption, and the cursor's


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
        self._trials = _SlowLines()

    def __call__(self, event: events.Event) -> None:
        if isinstance(event, events.RunStarted):
            self._started = event
        if not isinstance(event, events.TrialDone):
            for line in event_line(event, _settings_of(self._started)).splitlines():
                _print(line)
            return
        assert self._started is not None
        self._trials.print(trial_line(event, self._started))


class _SlowLines:
    """Prints lines, at most one every PLAIN_EVERY_S seconds; lines in between are dropped."""

    def __init__(self) -> None:
        self._printed_s = time.monotonic()

    def print(self, line: str) -> None:
        if time.monotonic() - self._printed_s >= PLAIN_EVERY_S:
            self._printed_s = time.monotonic()
            _print(line)


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


class CampaignState:
    """The state of a running campaign: per problem the number of trials and the best record so far."""

    def __init__(self, campaign: Campaign, feasible: int) -> None:
        self.campaign = campaign
        self._feasible = feasible  # configurations of all problems together
        self.trials = [0] * len(campaign.runs)
        self.best: list[Record | None] = [None] * len(campaign.runs)
        self.proposed = 0
        self.elapsed_s = campaign.seconds

    def take(self, event: events.RunEvent) -> None:
        self.proposed = event.proposed
        self.elapsed_s = event.elapsed_s
        if isinstance(event.event, events.TrialDone):
            self.trials[event.run_index] = event.event.counts.proposed
        if isinstance(event.event, events.TrialDone | events.TrialRefuted):
            self.best[event.run_index] = event.event.best

    @property
    def total_s(self) -> float | None:
        """Returns the sum of (best time x count) over the problems; None while a problem has no time."""
        total_s = 0.0
        for run, best in zip(self.campaign.runs, self.best, strict=True):
            if best is None or best.median_s is None:
                return None
            total_s += best.median_s * (1 if run.campaign is None else run.campaign.count)
        return total_s

    @property
    def line(self) -> str:
        """Returns one line: trials of the budget, problems with a time, total time, seconds spent."""
        limits = self.campaign.settings
        timed = sum(best is not None for best in self.best)
        trials = count_text(self.proposed, "trial")
        if limits.trials is not None:
            trials = f"{self.proposed}/{min(limits.trials, self._feasible)} trials"
        text = f"{trials}: {timed} of {count_text(len(self.best), 'problem')} timed"
        if self.total_s is not None:
            text += f"; total {seconds_text(self.total_s)}"
        if limits.budget_s is not None and self.elapsed_s > limits.budget_s:
            return f"{text}; {self.elapsed_s:.0f} s, the budget is spent"
        of_budget = "" if limits.budget_s is None else f" of {limits.budget_s:.0f}"
        return f"{text}; {self.elapsed_s:.0f}{of_budget} s"


class CompileState:
    """What is done of compiling a program: its fusions, then its weights, which are packed."""

    def __init__(self) -> None:
        self._fusions = 0
        self._ended = 0
        self._weights = WeightsPacked(0, 0)
        self._ops = ""  # of the fusion that began last
        self._began_s = time.monotonic()  # of the fusions, then of the weights

    def take(self, event: CompileEvent) -> None:
        match event:
            case FusionsFound(count):
                self._fusions = self._ended + count
            case FusionStarted(ops):
                self._ops = ops
            case FusionEnded():
                self._ended += 1
            case WeightsPacked():
                if not self._weights.total_bytes:
                    self._began_s = time.monotonic()
                self._weights = event

    @property
    def share(self) -> float:
        """Returns how much is done, 0 to 1: of the fusions, and once these are compiled of the weights."""
        if self._weights.total_bytes:
            return self._weights.done_bytes / self._weights.total_bytes
        return self._ended / max(1, self._fusions)

    @property
    def line(self) -> str:
        """Returns what is done: "3 of 12 fusions compiled, 8 s left, now linalg.matmul"."""
        parts = []
        if self._fusions:
            parts.append(f"{self._ended} of {count_text(self._fusions, 'fusion')} compiled")
        total_bytes = self._weights.total_bytes
        if total_bytes:
            parts.append(f"{self._weights.done_bytes / MIB:,.0f} of {total_bytes / MIB:,.0f} MiB packed")
        if 0 < self.share < 1:
            elapsed_s = time.monotonic() - self._began_s
            parts.append(f"{elapsed_s * (1 / self.share - 1):.0f} s left")
        if self._ops and not total_bytes:
            parts.append(f"now {self._ops}")
        return ", ".join(parts)


@contextlib.contextmanager
def compile_progress() -> Iterator[CompileObserver]:
    """Context manager: gives an observer that shows on stderr how much of a program is compiled.

    On a terminal a bar is updated in place, from the first fusion or weight on; otherwise at most one line is
    printed, after 5 s (PLAIN_EVERY_S).
    """
    if not sys.stderr.isatty():
        yield PlainCompileProgress()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (
        TextColumn("compiling"),
        BarColumn(bar_width=24),
        TextColumn("{task.description}", markup=False),
    )
    bar = Progress(*columns, console=Console(stderr=True, highlight=False), transient=True)
    with contextlib.ExitStack() as shown:
        yield LiveCompileProgress(bar, shown)


class LiveCompileProgress:
    """Updates a bar in place; the bar is entered into ``shown`` at the first event."""

    def __init__(self, bar: "Progress", shown: contextlib.ExitStack) -> None:
        self._bar = bar
        self._shown = shown
        self._state = CompileState()
        self._task: TaskID | None = None

    def __call__(self, event: CompileEvent) -> None:
        self._state.take(event)
        if self._task is None:
            self._shown.enter_context(self._bar)
            self._task = self._bar.add_task("", total=1.0)
        self._bar.update(self._task, completed=self._state.share, description=one_line(self._state.line))


class PlainCompileProgress:
    """Prints, at most once, how much is compiled, after PLAIN_EVERY_S (5) seconds.

    For a stderr without terminal.
    """

    def __init__(self) -> None:
        self._state = CompileState()
        self._due_s = time.monotonic() + PLAIN_EVERY_S

    def __call__(self, event: CompileEvent) -> None:
        self._state.take(event)
        is_ended = isinstance(event, FusionEnded) or self._state.share >= NEARLY_DONE
        if not is_ended and time.monotonic() >= self._due_s:
            self._due_s = math.inf
            _print(f"compiling: {self._state.line}")


@contextlib.contextmanager
def campaign_progress() -> Iterator[events.CampaignObserver]:
    """Context manager: gives an observer that prints a campaign's progress on stderr.

    On a terminal a table with a row per problem is updated in place; otherwise lines are printed, of trials
    at most one in PLAIN_EVERY_S (5) seconds.
    """
    if not sys.stderr.isatty():
        yield PlainCampaignProgress()
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True, highlight=False)
    with Live(console=console, transient=True, auto_refresh=False) as live:
        yield LiveCampaignProgress(live)


def started_line(event: events.CampaignStarted) -> str:
    """Returns the first line of a campaign: id, problems, target, threads, machine, configurations to try."""
    campaign = event.campaign
    run = event.campaign.runs[0]
    text = f"campaign {campaign.id}: {count_text(len(campaign.runs), 'problem')}, {run.settings.target}, "
    text += f"{count_text(run.settings.threads, 'thread')} on {run.machine.name}; "
    text += f"{count_text(len(campaign.settings.columns), 'configuration')} to try on each"
    return text + (f"; going on after {event.proposed_before} trials" if event.proposed_before else "")


class PlainCampaignProgress:
    """Observer that prints plain lines; for finished trials at most one per PLAIN_EVERY_S (5) seconds."""

    def __init__(self) -> None:
        self._state: CampaignState | None = None
        self._trials = _SlowLines()

    def __call__(self, event: events.CampaignEvent) -> None:
        if isinstance(event, events.CampaignStarted):
            self._state = CampaignState(event.campaign, event.feasible)
            _print(started_line(event))
            return
        assert self._state is not None
        self._state.take(event)
        if isinstance(event.event, events.TrialDone):
            self._trials.print(self._state.line)
        elif line := _event_line_of_run(event, self._state):
            _print(line)


class LiveCampaignProgress:
    """Observer that updates a table in place; events other than finished trials scroll above the table."""

    def __init__(self, live: "Live") -> None:
        self._live = live
        self._state: CampaignState | None = None

    def __call__(self, event: events.CampaignEvent) -> None:
        if isinstance(event, events.CampaignStarted):
            self._state = CampaignState(event.campaign, event.feasible)
            self._live.console.print(one_line(started_line(event)), markup=False)
            return
        assert self._state is not None
        self._state.take(event)
        if isinstance(event.event, events.TrialDone):
            line = ""
        else:
            line = _event_line_of_run(event, self._state)
        if line:
            self._live.console.print(one_line(line), markup=False)
        rows = max(1, self._live.console.size.height - FREE_LINES)
        columns = self._live.console.width
        self._live.update(progress_table(self._state, rows, columns), refresh=True)


def progress_table(state: CampaignState, rows: int, columns: int) -> "Table":
    """Returns the live table of a campaign: the ``rows`` problems with the largest time x count first.

    Problems without a time come last. Each is one line; where a terminal is narrow, the problem is cut first.
    """
    from rich.table import Table

    table = Table(caption=state.line)
    weighted = []
    for run, trials, best in zip(state.campaign.runs, state.trials, state.best, strict=True):
        problem = run.settings.problem
        name, count = ("", 1) if run.campaign is None else (run.campaign.name, run.campaign.count)
        weight = 0.0
        times = ("-", "-")
        if best is not None and best.median_s is not None:
            weight = best.median_s * count
            speed = speed_text(gflop_per_s(problem, best.median_s)).removesuffix(" GFLOP/s")
            times = (seconds_text(best.median_s), speed)
        weighted.append((weight, (one_line(name), problem.key, str(count), str(trials), *times)))
    shown = [cells for _, cells in sorted(weighted, key=lambda pair: -pair[0])[:rows]]
    widths = [max(map(len, column)) for column in zip(TABLE_HEADER, *shown, strict=True)]
    left = columns - sum(widths[2:]) - len(BORDERS) * (len(widths) + 1)  # for name and problem
    widths[0] = max(LEAST_NAME, min(widths[0], left - LEAST_NAME, left - widths[1]))
    widths[1] = min(widths[1], max(len("problem"), left - widths[0]))
    for column, width in zip(TABLE_HEADER, widths, strict=True):
        table.add_column(column, no_wrap=True, overflow="ellipsis", width=width)
    for cells in shown:
        table.add_row(*cells)
    return table


def _event_line_of_run(event: events.RunEvent, state: CampaignState) -> str:
    run = state.campaign.runs[event.run_index]
    if isinstance(event.event, events.BaselineMeasured | events.NoiseMeasured):
        return ""
    line = event_line(event.event, run.settings).partition("\n")[0]
    if isinstance(event.event, events.RemeasurementStarted):
        return f"{run.settings.problem.key}: {line}"
    return line


def _print(line: str) -> None:
    print(one_line(line), file=sys.stderr, flush=True)
