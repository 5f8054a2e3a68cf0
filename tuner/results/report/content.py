"""The content of a report as values, and the parts that its plots share: bars, coordinates, axes.

``Report`` is what ``page`` collects and the templates print. Below it are the choice of trials to show, and
numbers and paths of SVG.
"""

import datetime
import math
from collections.abc import Iterable
from dataclasses import dataclass

from tuner.analysis.selected_result import SelectedResult
from tuner.analysis.time_matrix import TimeMatrix
from tuner.core.candidate import Value
from tuner.core.queries import Counts
from tuner.core.records import PassSeconds
from tuner.core.requests import Campaign
from tuner.core.round_quality import NOISE_LIMIT
from tuner.core.runs import Run
from tuner.core.trials import StoredTrial

BARS_WIDTH = 1000.0  # of the drawing, in SVG units
WHISKER = 2.0  # least drawn width of an interval, in units, so that it stays visible
TRIALS_SHOWN = 6000  # listed and drawn on one page, all runs together: about 3 MB of HTML
TRIALS_SHOWN_OF_RUN = 300  # the least limit per run, however many runs there are
# of a plotting area, in SVG units
WIDTH = 720.0
HEIGHT = 240.0
TICKS = 5  # approximate number on an axis
Ticks = tuple[tuple[float, str], ...]  # coordinates along an axis, with their labels


@dataclass(frozen=True)
class ShownReliability:
    """How reliable a figure of a report is: a short label, the label's colour and the reason."""

    colour: str  # good, unknown, warning: names of the style sheet
    word: str
    reason: str


def reliability_of(run: Run, best: StoredTrial | None = None) -> ShownReliability:
    """Returns how reliable a run's times are, as a report shows it; ``best``: best trial, None: no times."""
    if not run.settings.target.has_machine:
        return ShownReliability("unknown", "replayed", "Times of a recording: nothing ran here.")
    if run.reliability.unreliable:
        return ShownReliability("warning", "unreliable", f"{run.reliability.reason}.")
    if run.noise is None:
        return ShownReliability(
            "unknown", "noise not measured", "No code was timed twice to see how far times repeat."
        )
    reason = "" if best is None else best.reliability.reason
    if reason:
        return ShownReliability("warning", "unreliable", f"{reason}.")
    differ = f"Two timings of the same code differ by {run.noise:.1%}"
    if run.noise > NOISE_LIMIT:
        return ShownReliability("warning", "unreliable", f"{differ}: something else was running.")
    return ShownReliability("good", f"noise {run.noise:.1%}", f"{differ}: smaller differences mean nothing.")


@dataclass(frozen=True)
class Bar:
    """A bar of a chart: a quantity as a share of the longest bar, optionally with its confidence interval."""

    name: str
    share: float  # 0 to 1
    figure: str
    colour: str = "ours"  # ours, baseline, failed, peak: names of the style sheet
    interval: tuple[float, float] | None = None  # shares

    @property
    def length(self) -> float:
        """Returns the drawn length in SVG units."""
        return BARS_WIDTH * self.share

    @property
    def whisker(self) -> tuple[float, float] | None:
        """Returns (left end, width) of the drawn interval in SVG units; None without an interval."""
        if self.interval is None:
            return None
        low, high = self.interval
        width = max(WHISKER, BARS_WIDTH * (high - low))
        return min(BARS_WIDTH - width, BARS_WIDTH * (low + high) / 2 - width / 2), width


@dataclass(frozen=True)
class BestKnown:
    """The best stored result of one problem on one machine and target, with its run."""

    selected: SelectedResult
    run: Run  # of the best trial
    passes: tuple[PassSeconds, ...] = ()  # of compiling the best trial again; () if not requested


@dataclass(frozen=True)
class ReportedRun:
    """A run of a report with the counts of its trials and all its trials."""

    run: Run
    counts: Counts
    trials: tuple[StoredTrial, ...]  # by number


@dataclass(frozen=True)
class ReportedCampaign:
    """A campaign of a report, with the matrix of times of its configurations on its problems."""

    campaign: Campaign
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
    campaign: ReportedCampaign | None = None  # that the runs belong to, where one is reported
    campaigns: tuple[Campaign, ...] = ()  # that the runs belong to: their programs are drawn


def shown_trials(reported: ReportedRun, runs: int) -> tuple[StoredTrial, ...]:
    """Returns the trials of a run to show: the fastest, and an even sample of the others, the fastest first.

    At most max(300, 6000 // ``runs``), where ``runs`` is the number of runs on the page.
    """
    limit = max(TRIALS_SHOWN_OF_RUN, TRIALS_SHOWN // runs)
    finished = sorted(reported.trials, key=lambda trial: (trial.best_s or float("inf"), trial.number))
    if len(finished) <= limit:
        return tuple(finished)
    head = finished[: limit // 2]
    tail = finished[limit // 2 :]
    count = limit - len(head)
    return (*head, *(tail[index * len(tail) // count] for index in range(count)))


def varying_knobs(trials: Iterable[StoredTrial]) -> set[str]:
    """Returns the names of the knobs that have several values among the trials."""
    values: dict[str, set[Value]] = {}
    for trial in trials:
        for name, value in trial.record.candidate.choices:
            values.setdefault(name, set()).add(value)
    return {name for name, several in values.items() if len(several) > 1}


def number(value: float) -> str:
    """Returns a coordinate as text for SVG, rounded to a tenth of a unit."""
    return f"{round(value, 1):.10g}"


def line(points: Iterable[tuple[float, float]]) -> str:
    """Returns the SVG path of a polyline through points (x, y)."""
    return "M" + " ".join(f"{number(x)} {number(y)}" for x, y in points)


def round_numbers(top: float) -> list[float]:
    """Returns the ticks of an axis: 0 and the multiples of a round step that are below ``top`` > 0."""
    raw = top / TICKS
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw)
    return [round(step * index, 12) for index in range(math.ceil(top / step))]


def powers_of_ten(low: float, high: float) -> list[float]:
    """Returns the powers of ten from ``low`` to ``high``, both inclusive and above 0."""
    return [10.0**power for power in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)]
