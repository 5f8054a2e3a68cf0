"""Plots of a run in a report: convergence of the search, importance of knobs, roofline."""

import math
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from tuner.analysis.importance import Ablation
from tuner.analysis.selected_result import timed
from tuner.core.roofline import Roofline
from tuner.core.runs import SEED, SPACE_FILE, Run
from tuner.core.trials import StoredTrial
from tuner.results.explanations import GAIN_HEADER, held_row, strategy_row, without_row
from tuner.results.output.formatting import gflop_per_s
from tuner.results.report.content import HEIGHT, WIDTH, Bar, Ticks, line, number, powers_of_ten, round_numbers

FINALS = 90.0  # units to the right of the plotting area, for the finally re-measured top-k trials
DOTS = 800  # about the most that are drawn; more are thinned out evenly, but no new best trial is dropped
HEADROOM = 1.08  # upper edge of the plot, relative to the highest speed
LETTER = 7.0  # width of a letter in units, at most: a band narrower than its name is not labelled
ORIGIN_NAMES = {SPACE_FILE: "search-space file", SEED: "cost model"}  # origin as stored -> in the plot
KNOBS = ("knob", "held at", *GAIN_HEADER, "without", *GAIN_HEADER)
STRATEGIES = ("strategy", "all trials", "failed", "best", *GAIN_HEADER)
ROOM = 10.0, 3.0  # factors by which the axes of intensity and speed extend beyond the data
DECADES = 2.0  # of speed shown below the roof, at least


@dataclass(frozen=True)
class Speed:
    """The measured speed of one trial in GFLOP/s, with the trial's id and number."""

    trial: int  # id
    number: int
    gflop_per_s: float


@dataclass(frozen=True)
class Phase:
    """A range of consecutive trials whose configurations came from the same source."""

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
        return max(speed.gflop_per_s for speed in self.speeds)

    @property
    def right(self) -> float:
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
        """Returns the trials drawn as dots: each new best trial, and an even sample of all trials."""
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
        return tuple((self.y(tick), f"{tick:g}") for tick in round_numbers(self.top))

    @property
    def across(self) -> Ticks:
        whole = (tick for tick in round_numbers(self.count) if tick == int(tick))
        return tuple((self.x(tick), f"{tick:g}") for tick in whole)

    @property
    def staircase(self) -> str:
        first, *others = self.incumbents
        steps = "".join(f"H{number(self.x(e.number))}V{number(self.y(e.gflop_per_s))}" for e in others)
        return f"M{number(self.x(first.number))} {number(self.y(first.gflop_per_s))}{steps}H{WIDTH:g}"

    @property
    def failures(self) -> str:
        """Returns the SVG path of marks below the axis for failed trials; an even sample of many."""
        shown = self.failed[:: -(-len(self.failed) // DOTS)] if self.failed else ()
        return "".join(f"M{number(self.x(n))} {HEIGHT + 4:g}v8" for n in shown)

    def x(self, place: float) -> float:
        return WIDTH * (place + 0.5) / self.count

    def final_x(self, place: int) -> float:
        return WIDTH + FINALS / (len(self.final_times) + 1) * place

    def y(self, speed: float) -> float:
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
    first = ", ".join(dict.fromkeys(ORIGIN_NAMES.get(origin, origin) for origin in origins.values()))
    named = [
        (trial.number, first if trial.number < len(points) and trial.record.candidate in origins else "")
        for trial in sorted(trials, key=attrgetter("number"))
    ]
    phases = []
    for name, group in groupby(named, key=lambda pair: pair[1]):
        numbers = [number for number, _ in group]
        phases.append(Phase(name or run.settings.sampler, numbers[0], numbers[-1]))
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


# Roofline plot of a machine with the best trial of a run.
# Source: Williams et al., 2009, https://doi.org/10.1145/1498765.1498785.


@dataclass(frozen=True)
class RooflinePlot:
    """A roofline plot: the machine's limits, the best trial and the baseline at the problem's intensity."""

    roof: Roofline
    intensity: float  # of the problem, flop/byte
    speeds: tuple[float, ...]  # flop/s: of the best trial, then of the baseline if there is one
    share: float  # the roofline's least time, divided by the best trial's time
    objection: str  # why ``share`` may not be printed; "" if it may
    is_held: bool  # the problem fits into the last-level cache

    @property
    def ridge(self) -> float:
        """Returns the ridge point: the intensity (flop/byte) above which arithmetic is the bound."""
        return self.roof.flop_per_s / self.roof.bytes_per_s

    @property
    def up(self) -> Ticks:
        return tuple((self.y(speed), f"{speed / 1e9:g}") for speed in powers_of_ten(*self._speed_range))

    @property
    def across(self) -> Ticks:
        return tuple((self.x(power), f"{power:g}") for power in powers_of_ten(*self._intensity_range))

    @property
    def roofs(self) -> str:
        start = max(self._intensity_range[0], self._speed_range[0] / self.roof.bytes_per_s)
        points = (
            (start, start * self.roof.bytes_per_s),
            *((intensity, self.roof.flop_per_s) for intensity in (self.ridge, self._intensity_range[1])),
        )
        return line((self.x(intensity), self.y(speed)) for intensity, speed in points)

    def x(self, intensity: float) -> float:
        return WIDTH * _share(intensity, *self._intensity_range)

    def y(self, speed: float) -> float:
        return HEIGHT * (1 - _share(speed, *self._speed_range))

    @property
    def _intensity_range(self) -> tuple[float, float]:
        low, high = sorted((self.intensity, self.ridge))
        return low / ROOM[0], high * ROOM[0]

    @property
    def _speed_range(self) -> tuple[float, float]:
        level = self.roof.flop_per_s
        return min(*self.speeds, level / 10**DECADES) / ROOM[1], max(*self.speeds, level) * ROOM[1]


def roofline_of(run: Run, roof: Roofline, best: StoredTrial) -> RooflinePlot:
    """Returns the plot of a roofline with the best trial and the baseline.

    The roofline is first raised to the speed of the faster of both, where it was measured too low.
    """
    problem = run.settings.problem
    median_s = timed(best).median_s
    work = problem.flop, problem.bytes, run.machine.l3_bytes
    times = [median_s] if run.baseline is None else [median_s, run.baseline.measurement.median_s]
    roof = roof.raised(*work, min(times))
    return RooflinePlot(
        roof=roof,
        intensity=problem.flop / problem.bytes,
        speeds=tuple(problem.flop / time for time in times),
        share=roof.share(*work, median_s),
        objection=best.reliability.reason,
        is_held=problem.bytes <= run.machine.l3_bytes,
    )


def _share(value: float, low: float, high: float) -> float:
    return math.log(value / low) / math.log(high / low)
