"""Convergence plot of a search: trials as dots, best so far as a line, phases as bands, then the top-k."""

from dataclasses import dataclass
from itertools import groupby

from tuner.core.runs import Run, StoredTrial
from tuner.output.json_documents import gflop_per_s
from tuner.output.report.drawing import HEIGHT, WIDTH, Ticks, number, round_numbers

FINALS = 90.0  # units to the right of the plotting area, for the finally re-measured top-k trials
DOTS = 800  # about the most that are drawn; more are thinned out evenly, but no new best trial is dropped
HEADROOM = 1.08  # upper edge of the plot, relative to the highest speed
LETTER = 7.0  # width of a letter in units, at most: a band narrower than its name is not labelled


@dataclass(frozen=True)
class Speed:
    """The measured speed of one trial in GFLOP/s, with the trial's id and number."""

    trial: int  # id
    number: int
    gflop_per_s: float


@dataclass(frozen=True)
class Phase:
    """A range of consecutive trials with the same origin: first configurations, or the sampler."""

    name: str  # origin of the first configurations, or the sampler
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
        """True if the name of the phase fits into the band."""
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
        """Returns the highest speed of a trial in the search, in GFLOP/s; re-measured speeds do not count."""
        return max(each.gflop_per_s for each in self.speeds)

    @property
    def right(self) -> float:
        """Returns the x coordinate of the plot's right edge in SVG units, the re-measured trials included."""
        return WIDTH + (FINALS if self.final_times else 0.0)

    @property
    def turns(self) -> tuple[Speed, ...]:
        """Returns the trials that were faster than all timed trials before, by number."""
        turns: list[Speed] = []
        for speed in self.speeds:
            if not turns or speed.gflop_per_s > turns[-1].gflop_per_s:
                turns.append(speed)
        return tuple(turns)

    @property
    def dots(self) -> tuple[Speed, ...]:
        """Returns the trials drawn as dots: each new best trial and, of many other trials, an even sample."""
        step = -(-len(self.speeds) // DOTS)
        return tuple(dict.fromkeys((*self.turns, *self.speeds[::step])))

    @property
    def bands(self) -> tuple[Band, ...]:
        """Returns the bands of the phases from left to right, then that of the final re-measurement, if any.

        A band reaches up to the first trial of the next phase.
        """
        starts = [self.x(phase.first - 0.5) for phase in self.phases]
        ends = [*starts[1:], WIDTH]
        bands = [
            Band(phase.name, x, end - x) for phase, x, end in zip(self.phases, starts, ends, strict=True)
        ]
        return (*bands, *[Band("final re-measurement", WIDTH, FINALS)] * bool(self.final_times))

    @property
    def up(self) -> Ticks:
        """Returns the ticks of the speed axis as (y coordinate, label in GFLOP/s)."""
        return tuple((self.y(tick), f"{tick:g}") for tick in round_numbers(self.top))

    @property
    def across(self) -> Ticks:
        """Returns the ticks of the axis of trial numbers as (x coordinate, label)."""
        whole = (tick for tick in round_numbers(self.count) if tick == int(tick))
        return tuple((self.x(tick), f"{tick:g}") for tick in whole)

    @property
    def staircase(self) -> str:
        """Returns the SVG path of the best speed so far: a step at each new best trial, to the right edge."""
        first, *others = self.turns
        steps = "".join(f"H{number(self.x(e.number))}V{number(self.y(e.gflop_per_s))}" for e in others)
        return f"M{number(self.x(first.number))} {number(self.y(first.gflop_per_s))}{steps}H{WIDTH:g}"

    @property
    def failures(self) -> str:
        """Returns the SVG path of marks below the axis for failed trials; an even sample of many."""
        shown = self.failed[:: -(-len(self.failed) // DOTS)] if self.failed else ()
        return "".join(f"M{number(self.x(n))} {HEIGHT + 4:g}v8" for n in shown)

    def x(self, place: float) -> float:
        """Returns the x coordinate in SVG units of the trial with number ``place``."""
        return WIDTH * (place + 0.5) / self.count

    def final_x(self, place: int) -> float:
        """Returns the x coordinate in SVG units of a re-measured trial; the fastest has place 1."""
        return WIDTH + FINALS / (len(self.final_times) + 1) * place

    def y(self, speed: float) -> float:
        """Returns the y coordinate in SVG units, from the top, of a speed in GFLOP/s."""
        return HEIGHT * (1 - speed / self.top)


def convergence_of(run: Run, trials: tuple[StoredTrial, ...]) -> Convergence | None:
    """Returns the convergence plot of a run from all its trials; None if no trial was timed."""
    by_number = sorted(trials, key=lambda each: each.number)
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
        final_times=tuple(sorted(final_times, key=lambda each: -each.gflop_per_s)),
        failed=tuple(t.number for t in by_number if t.record.status == "failed"),
        phases=phases_of(run, trials),
        baseline=baseline,
        count=by_number[-1].number + 1,
        top=HEADROOM * max(baseline or 0.0, *(each.gflop_per_s for each in (*speeds, *final_times))),
    )


def phases_of(run: Run, trials: tuple[StoredTrial, ...]) -> tuple[Phase, ...]:
    """Returns the phases of a run's search, in order: ranges of trial numbers with the same origin."""
    named = [(trial.number, _reason(run, trial)) for trial in sorted(trials, key=lambda each: each.number)]
    found = []
    for name, group in groupby(named, key=lambda pair: pair[1]):
        numbers = [number for number, _ in group]
        found.append(Phase(name, numbers[0], numbers[-1]))
    return tuple(found)


def _reason(run: Run, trial: StoredTrial) -> str:
    """Returns the origin of a trial: the origins of the run's first configurations, else the sampler.

    First configurations come before any other; those of two origins are interleaved and are one phase.
    """
    points = run.settings.first or ()
    if trial.number < len(points):
        origins = {point.candidate: point.origin for point in points}
        if trial.record.candidate in origins:
            return ", ".join(dict.fromkeys(origins.values()))
    return run.settings.sampler
