"""Live progress of a campaign on stderr: a table on a terminal, else plain lines.

``campaign_progress`` gives an observer of events: LiveCampaignProgress on a terminal, else
PlainCampaignProgress.
"""

import contextlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tuner.core.records import Record
from tuner.core.requests import Campaign
from tuner.core.serialization import count_text, seconds_text
from tuner.results.output.formatting import gflop_per_s, one_line, speed_text
from tuner.results.output.progress import SlowLines, event_line, print_line
from tuner.tuning import events

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

TABLE_HEADER = ("name", "problem", "count", "trials", "best", "GFLOP/s")  # of the live table of a campaign
LEAST_NAME = 24  # columns of a name, where a terminal is narrow
BORDERS = "\N{BOX DRAWINGS LIGHT VERTICAL}  "  # of a cell of the table, with its padding
FREE_LINES = 6  # of the terminal: three of the table's head, its end, its caption, and the cursor's


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
    if event.proposed_before:
        text += f"; going on after {event.proposed_before} trials"
    return text


class PlainCampaignProgress:
    """Observer that prints plain lines; for finished trials at most one per PLAIN_EVERY_S (5) seconds."""

    def __init__(self) -> None:
        self._state: CampaignState | None = None
        self._trials = SlowLines()

    def __call__(self, event: events.CampaignEvent) -> None:
        if isinstance(event, events.CampaignStarted):
            self._state = CampaignState(event.campaign, event.feasible)
            print_line(started_line(event))
            return
        assert self._state is not None
        self._state.take(event)
        if isinstance(event.event, events.TrialDone):
            self._trials.print(self._state.line)
        elif line := _event_line_of_run(event, self._state):
            print_line(line)


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
        name = ""
        count = 1
        if run.campaign is not None:
            name = run.campaign.name
            count = run.campaign.count
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
