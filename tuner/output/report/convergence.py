"""How a search converged: trials as dots, the best so far as a line, the phases as bands, then the finals."""

from dataclasses import dataclass
from itertools import groupby

from tuner.core.runs import Run, StoredTrial
from tuner.output.json_documents import gflop_per_s
from tuner.output.report.drawing import HEIGHT, WIDTH, Ticks, number, round_numbers

FINALS = 90.0  # units to the right of the plotting area, for the finalists
DOTS = 800  # drawn; of more trials every so many is left out, but none that the line turns at
HEADROOM = 1.08  # above the fastest
LETTER = 7.0  # units that a letter takes at most: a band that is too narrow for its name has none


@dataclass(frozen=True)
class Speed:
    """What one trial was timed at."""

    trial: int  # id
    number: int
    gflop_per_s: float


@dataclass(frozen=True)
class Phase:
    """Trials that were proposed for one reason, one after the other."""

    name: str  # where first points come from, or the sampler
    first: int  # numbers of trials
    last: int


@dataclass(frozen=True)
class Band:
    """The part of the drawing that belongs to a phase."""

    name: str
    x: float
    width: float

    @property
    def has_space(self) -> bool:
        """Returns whether its name fits into it."""
        return self.width >= LETTER * (len(self.name) + 1)


@dataclass(frozen=True)
class Convergence:
    """All that the drawing shows."""

    speeds: tuple[Speed, ...]  # first timings, by number
    finals: tuple[Speed, ...]  # of the finalists, timed in turns; fastest first
    failed: tuple[int, ...]  # numbers
    phases: tuple[Phase, ...]
    baseline: float | None  # GFLOP/s
    count: int  # trials
    top: float  # GFLOP/s at the upper edge

    @property
    def best(self) -> float:
        """Returns the highest speed as first timed, in GFLOP/s."""
        return max(each.gflop_per_s for each in self.speeds)

    @property
    def right(self) -> float:
        """Returns where the drawing ends."""
        return WIDTH + (FINALS if self.finals else 0.0)

    @property
    def turns(self) -> tuple[Speed, ...]:
        """Returns the trials that were faster than all before."""
        turns: list[Speed] = []
        for speed in self.speeds:
            if not turns or speed.gflop_per_s > turns[-1].gflop_per_s:
                turns.append(speed)
        return tuple(turns)

    @property
    def dots(self) -> tuple[Speed, ...]:
        """Returns the turns and, of many other trials, every so many."""
        step = -(-len(self.speeds) // DOTS)
        return tuple(dict.fromkeys((*self.turns, *self.speeds[::step])))

    @property
    def bands(self) -> tuple[Band, ...]:
        """Returns each phase from its first trial to the next phase's first, then the finals."""
        starts = [self.x(phase.first - 0.5) for phase in self.phases]
        ends = [*starts[1:], WIDTH]
        bands = [
            Band(phase.name, x, end - x) for phase, x, end in zip(self.phases, starts, ends, strict=True)
        ]
        return (*bands, *[Band("finals", WIDTH, FINALS)] * bool(self.finals))

    @property
    def up(self) -> Ticks:
        """Returns the speeds on the axis."""
        return tuple((self.y(tick), f"{tick:g}") for tick in round_numbers(self.top))

    @property
    def across(self) -> Ticks:
        """Returns the numbers of trials on the axis."""
        whole = (tick for tick in round_numbers(self.count) if tick == int(tick))
        return tuple((self.x(tick), f"{tick:g}") for tick in whole)

    @property
    def staircase(self) -> str:
        """Returns a path that runs level from each turn to the next, and on to the right edge."""
        first, *others = self.turns
        steps = "".join(f"H{number(self.x(e.number))}V{number(self.y(e.gflop_per_s))}" for e in others)
        return f"M{number(self.x(first.number))} {number(self.y(first.gflop_per_s))}{steps}H{WIDTH:g}"

    @property
    def failures(self) -> str:
        """Returns a path of marks below the axis, of many failed trials for every so many."""
        shown = self.failed[:: -(-len(self.failed) // DOTS)] if self.failed else ()
        return "".join(f"M{number(self.x(n))} {HEIGHT + 4:g}v8" for n in shown)

    def x(self, place: float) -> float:
        """Returns where a trial's number lies."""
        return WIDTH * (place + 0.5) / self.count

    def final_x(self, place: int) -> float:
        """Returns where a finalist lies, the fastest at place 1."""
        return WIDTH + FINALS / (len(self.finals) + 1) * place

    def y(self, speed: float) -> float:
        """Returns where a speed lies, from the top."""
        return HEIGHT * (1 - speed / self.top)


def convergence_of(run: Run, trials: tuple[StoredTrial, ...]) -> Convergence | None:
    """Returns what is to be drawn; None when nothing was timed."""
    by_number = sorted(trials, key=lambda each: each.number)
    problem = run.settings.problem
    speeds = tuple(
        Speed(trial.id, trial.number, problem.flop / trial.record.median_s / 1e9)
        for trial in by_number
        if trial.record.median_s is not None
    )
    if not speeds:
        return None
    finals = tuple(
        Speed(trial.id, trial.number, problem.flop / trial.final.median_s / 1e9)
        for trial in by_number
        if trial.final is not None
    )
    baseline = gflop_per_s(problem, None if run.baseline is None else run.baseline.measurement.median_s)
    return Convergence(
        speeds=speeds,
        finals=tuple(sorted(finals, key=lambda each: -each.gflop_per_s)),
        failed=tuple(t.number for t in by_number if t.record.status == "failed"),
        phases=phases_of(run, trials),
        baseline=baseline,
        count=by_number[-1].number + 1,
        top=HEADROOM * max(baseline or 0.0, *(each.gflop_per_s for each in (*speeds, *finals))),
    )


def phases_of(run: Run, trials: tuple[StoredTrial, ...]) -> tuple[Phase, ...]:
    """Returns the phases that a run went through, in order."""
    named = [(trial.number, _reason(run, trial)) for trial in sorted(trials, key=lambda each: each.number)]
    found = []
    for name, group in groupby(named, key=lambda pair: pair[1]):
        numbers = [number for number, _ in group]
        found.append(Phase(name, numbers[0], numbers[-1]))
    return tuple(found)


def _reason(run: Run, trial: StoredTrial) -> str:
    """Returns why a trial was proposed: first points come before any other, those of two origins by turns."""
    points = run.settings.first or ()
    if trial.number < len(points):
        origins = {point.candidate: point.origin for point in points}
        if trial.record.candidate in origins:
            return ", ".join(dict.fromkeys(origins.values()))
    return run.settings.sampler
