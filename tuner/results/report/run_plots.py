"""Plots of a run in a report: convergence of the search, importance of knobs; tables of its ablation.

``Convergence`` has the data and the SVG paths of the plot of speeds by trial; below it are the phases of a
search, and the bars and rows of an ablation.
"""

from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from tuner.analysis.importance import Ablation
from tuner.core.runs import SEED, SPACE_FILE, Run
from tuner.core.trials import StoredTrial
from tuner.results.output.ablation import (
    GAIN_HEADER,
    HELD_HEADER,
    WITHOUT_HEADER,
    held_row,
    strategy_row,
    without_row,
)
from tuner.results.output.formatting import gflop_per_s
from tuner.results.report.content import HEIGHT, WIDTH, Bar, Ticks, number, round_numbers

FINALS = 90.0  # units to the right of the plotting area, for the finally re-measured top-k trials
DOTS = 800  # about the most that are drawn; more are thinned out evenly, but no new best trial is dropped
HEADROOM = 1.08  # upper edge of the plot, relative to the highest speed
LETTER = 7.0  # width of a letter in units, at most: a band narrower than its name is not labelled
ORIGIN_NAMES = {SPACE_FILE: "search-space file", SEED: "cost model"}  # origin as stored -> in the plot
KNOBS = (*HELD_HEADER[:-1], *WITHOUT_HEADER[1:])  # as ``knob_rows`` joins the cells of the two
STRATEGIES = ("strategy", "all trials", "failed", "best", *GAIN_HEADER)


@dataclass(frozen=True)
class Speed:
    """The measured speed of one trial in GFLOP/s, with the trial's id and number."""

    trial: int  # id
    number: int
    gflop_per_s: float


@dataclass(frozen=True)
class Phase:
    """A range of consecutive trials whose configurations have the same origin, such as the sampler."""

    name: str  # origin of the initial configurations, or the sampler
    first: int  # trial numbers; ``last`` is included
    last: int


@dataclass(frozen=True)
class Band:
    """The part of a convergence plot's width that belongs to a phase of the search."""

    name: str
    x: float
    width: float

    @property
    def has_space(self) -> bool:
        return self.width >= LETTER * (len(self.name) + 1)


@dataclass(frozen=True)
class Convergence:
    """The data of a run's convergence plot: speed of each trial by number; coordinates are in SVG units."""

    speeds: tuple[Speed, ...]  # first timings, by number
    final_times: tuple[Speed, ...]  # of the final re-measurement, interleaved; fastest first
    failed: tuple[int, ...]  # trial numbers
    phases: tuple[Phase, ...]
    baseline: float | None  # GFLOP/s
    count: int  # trials
    top: float  # GFLOP/s at the upper edge

    @property
    def best(self) -> float:
        """Returns the highest speed of the first timings, in GFLOP/s."""
        return max(speed.gflop_per_s for speed in self.speeds)

    @property
    def right(self) -> float:
        """Returns the x coordinate of the right edge, after the final re-measurement if there is one."""
        return WIDTH + (FINALS if self.final_times else 0.0)

    @property
    def incumbents(self) -> tuple[Speed, ...]:
        """Returns the trials that were faster than all timed trials before, by number."""
        incumbents: list[Speed] = []
        for speed in self.speeds:
            if not incumbents or speed.gflop_per_s > incumbents[-1].gflop_per_s:
                incumbents.append(speed)
        return tuple(incumbents)

    @property
    def dots(self) -> tuple[Speed, ...]:
        """Returns the trials drawn as dots: each new best trial, and an even sample of the timed ones."""
        step = -(-len(self.speeds) // DOTS)
        return tuple(dict.fromkeys((*self.incumbents, *self.speeds[::step])))

    @property
    def bands(self) -> tuple[Band, ...]:
        """Returns the bands of the phases, left to right, and of the final re-measurement, if any."""
        starts = [self.x(phase.first - 0.5) for phase in self.phases]
        ends = [*starts[1:], WIDTH]
        bands = [
            Band(phase.name, x, end - x) for phase, x, end in zip(self.phases, starts, ends, strict=True)
        ]
        if self.final_times:
            bands.append(Band("final re-measurement", WIDTH, FINALS))
        return tuple(bands)

    @property
    def up(self) -> Ticks:
        """Returns the ticks of the axis of speed: (y, label in GFLOP/s)."""
        return tuple((self.y(tick), f"{tick:g}") for tick in round_numbers(self.top))

    @property
    def across(self) -> Ticks:
        """Returns the ticks of the axis of trial numbers: (x, label)."""
        whole = (tick for tick in round_numbers(self.count) if tick == int(tick))
        return tuple((self.x(tick), f"{tick:g}") for tick in whole)

    @property
    def staircase(self) -> str:
        """Returns the SVG path of the best speed so far, by trial number."""
        first, *others = self.incumbents
        steps = "".join(f"H{number(self.x(e.number))}V{number(self.y(e.gflop_per_s))}" for e in others)
        return f"M{number(self.x(first.number))} {number(self.y(first.gflop_per_s))}{steps}H{WIDTH:g}"

    @property
    def failures(self) -> str:
        """Returns the SVG path of marks below the axis for failed trials; an even sample of many."""
        shown = self.failed[:: -(-len(self.failed) // DOTS)] if self.failed else ()
        return "".join(f"M{number(self.x(trial))} {HEIGHT + 4:g}v8" for trial in shown)

    def x(self, trial: float) -> float:
        """Returns the x coordinate of a trial's number."""
        return WIDTH * (trial + 0.5) / self.count

    def final_x(self, rank: int) -> float:
        """Returns the x coordinate of the trial of ``rank``, from 1, in the final re-measurement."""
        return WIDTH + FINALS / (len(self.final_times) + 1) * rank

    def y(self, speed: float) -> float:
        """Returns the y coordinate of a speed in GFLOP/s."""
        return HEIGHT * (1 - speed / self.top)


def convergence_of(run: Run, trials: tuple[StoredTrial, ...]) -> Convergence | None:
    """Returns the convergence plot of a run from all its trials; None if no trial was timed."""
    by_number = sorted(trials, key=attrgetter("number"))
    problem = run.settings.problem
    speeds = tuple(
        Speed(trial.id, trial.number, problem.flop / trial.record.median_s / 1e9)
        for trial in by_number
        if trial.record.median_s is not None
    )
    if not speeds:
        return None
    final_times = tuple(
        Speed(trial.id, trial.number, problem.flop / trial.final.median_s / 1e9)
        for trial in by_number
        if trial.final is not None
    )
    baseline = gflop_per_s(problem, None if run.baseline is None else run.baseline.measurement.median_s)
    return Convergence(
        speeds=speeds,
        final_times=tuple(sorted(final_times, key=lambda speed: -speed.gflop_per_s)),
        failed=tuple(t.number for t in by_number if t.record.status == "failed"),
        phases=phases_of(run, trials),
        baseline=baseline,
        count=by_number[-1].number + 1,
        top=HEADROOM * max(baseline or 0.0, *(speed.gflop_per_s for speed in (*speeds, *final_times))),
    )


def phases_of(run: Run, trials: tuple[StoredTrial, ...]) -> tuple[Phase, ...]:
    """Returns the phases of a run's search, in order: ranges of trial numbers with the same origin."""
    # Initial configurations come before any other; those of two origins are interleaved and are one phase
    points = run.settings.first or ()
    origins = {point.candidate: point.origin for point in points}
    initial = ", ".join(dict.fromkeys(ORIGIN_NAMES.get(origin, origin) for origin in origins.values()))

    def source(trial: StoredTrial) -> str:
        if trial.number < len(points) and trial.record.candidate in origins:
            return initial
        return run.settings.sampler

    phases = []
    for name, group in groupby(sorted(trials, key=attrgetter("number")), key=source):
        of_phase = list(group)
        phases.append(Phase(name, of_phase[0].number, of_phase[-1].number))
    return tuple(phases)


def importance_bars(ablation: Ablation, is_trusted: bool = True) -> tuple[Bar, ...]:
    """Returns a bar per knob, the most important first; with the knob's gain, if times are trusted."""
    bars = []
    largest = max((knob.importance for knob in ablation.knobs), default=0.0)
    for knob in sorted(ablation.knobs, key=lambda knob: -knob.importance):
        gain = f", gain {knob.without_best.slower:.1%}" if knob.without_best and is_trusted else ""
        share = knob.importance / largest if largest > 0 else 0.0
        bars.append(Bar(f"{knob.knob} = {knob.best}", share, f"{knob.importance:.0%}{gain}"))
    return tuple(bars)


def knob_rows(ablation: Ablation) -> list[tuple[str, ...]]:
    """Returns the table of an ablation's knobs as tuples of cells, the header first."""
    return [KNOBS, *((*held_row(knob)[:-1], *without_row(knob)[1:]) for knob in ablation.knobs)]


def strategy_rows(ablation: Ablation) -> list[tuple[str, ...]]:
    """Returns the table of an ablation's strategies as tuples of cells, the header first."""
    return [STRATEGIES, *map(strategy_row, ablation.strategies)]
