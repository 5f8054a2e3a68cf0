"""How a search converged: trials as dots, the best so far as a line, the phases as bands, then the finals."""

from dataclasses import dataclass

from tuner.core.runs import Run, StoredTrial
from tuner.output.json_documents import gflop_per_s
from tuner.output.report.axis import round_numbers
from tuner.output.report.element import Markup, element, joined, number
from tuner.output.report.phases import Phase, phases_of

WIDTH, HEIGHT = 720.0, 240.0  # of the plotting area, in the drawing's own units
FINALS = 90.0  # beside it, for the finalists
DOTS = 800  # drawn; of more trials every so many is left out, but none that the line turns at
HEADROOM = 1.08  # above the fastest
LETTER = 7.0  # units that a letter takes at most: a band that is too narrow for its name has none
VIEW = "-76 -30 {width:g} 322"


@dataclass(frozen=True)
class Speed:
    """What one trial was timed at."""

    trial: int  # id
    number: int
    gflop_per_s: float


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
    def turns(self) -> tuple[Speed, ...]:
        """Returns the trials that were faster than all before."""
        turns: list[Speed] = []
        for speed in self.speeds:
            if not turns or speed.gflop_per_s > turns[-1].gflop_per_s:
                turns.append(speed)
        return tuple(turns)

    def x(self, place: float) -> float:
        """Returns where a trial's number lies."""
        return WIDTH * (place + 0.5) / self.count

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
        if trial.record is not None and trial.record.median_s is not None
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
        failed=tuple(t.number for t in by_number if t.record is not None and t.record.status == "failed"),
        phases=phases_of(run, trials),
        baseline=baseline,
        count=by_number[-1].number + 1,
        top=HEADROOM * max(baseline or 0.0, *(each.gflop_per_s for each in (*speeds, *finals))),
    )


def convergence(drawn: Convergence, run: Run) -> Markup:
    """Draws it."""
    best = max(each.gflop_per_s for each in drawn.speeds)
    counts = f"{drawn.count} trials, {len(drawn.failed)} failed"
    drawing = element(
        "svg",
        element("title", f"Convergence of run {run.id}"),
        element("desc", f"Speed in GFLOP/s by trial: {counts}, best {best:.4g} GFLOP/s."),
        _bands(drawn),
        _axes(drawn),
        _failures(drawn),
        _baseline(drawn),
        element("g", *(_dot(drawn, each) for each in _dots(drawn)), class_="dots"),
        element("path", class_="best", d=_staircase(drawn)),
        _finals(drawn),
        viewBox=VIEW.format(width=76 + WIDTH + (FINALS + 12 if drawn.finals else 12)),
        role="img",
        class_="plot",
    )
    return element(
        "figure", element("div", drawing, class_="wide"), element("figcaption", _legend(drawn, run))
    )


def _dots(drawn: Convergence) -> tuple[Speed, ...]:
    step = -(-len(drawn.speeds) // DOTS)
    return tuple(dict.fromkeys((*drawn.turns, *drawn.speeds[::step])))


def _dot(drawn: Convergence, speed: Speed) -> Markup:
    x, y = drawn.x(speed.number), drawn.y(speed.gflop_per_s)
    return element("circle", cx=x, cy=y, r=2.5, data_t=str(speed.trial))


def _bands(drawn: Convergence) -> Markup:
    """Draws each phase as a band from its first trial to the next phase's first."""
    starts = [drawn.x(phase.first - 0.5) for phase in drawn.phases]
    ends = [*starts[1:], WIDTH]
    bands = [
        joined((_band(index, start, end - start), _band_name(phase.name, start, end - start)))
        for index, (phase, start, end) in enumerate(zip(drawn.phases, starts, ends, strict=True))
    ]
    if drawn.finals:
        bands.append(joined((_band(len(bands), WIDTH, FINALS), _band_name("finals", WIDTH, FINALS))))
    return element("g", *bands)


def _band(index: int, x: float, width: float) -> Markup:
    return element("rect", class_=f"band-{index % 2}", x=x, y=-18.0, width=width, height=HEIGHT + 18.0)


def _band_name(name: str, x: float, width: float) -> Markup | None:
    if width < LETTER * (len(name) + 1):
        return None
    return element("text", name, x=x + 5, y=-6.0, class_="phase")


def _axes(drawn: Convergence) -> Markup:
    lines = []
    for tick in round_numbers(drawn.top):
        y = drawn.y(tick)
        lines.append(element("line", class_="grid", x1=0.0, x2=WIDTH, y1=y, y2=y))
        lines.append(element("text", f"{tick:g}", x=-8.0, y=y + 4, text_anchor="end"))
    numbers = (tick for tick in round_numbers(drawn.count) if tick == int(tick))
    under = HEIGHT + 28
    lines += [element("text", f"{n:g}", x=drawn.x(n), y=under, text_anchor="middle") for n in numbers]
    lines.append(element("text", "GFLOP/s", x=-72.0, y=-12.0, class_="unit"))
    lines.append(element("text", "trial", x=WIDTH / 2, y=HEIGHT + 46, text_anchor="middle", class_="unit"))
    return element("g", *lines)


def _failures(drawn: Convergence) -> Markup | None:
    """Draws a mark below the axis for each failed trial, of many for every so many."""
    if not drawn.failed:
        return None
    shown = drawn.failed[:: -(-len(drawn.failed) // DOTS)]
    marks = "".join(f"M{number(drawn.x(n))} {HEIGHT + 4:g}v8" for n in shown)
    return element("path", class_="failed", d=marks)


def _baseline(drawn: Convergence) -> Markup | None:
    if drawn.baseline is None:
        return None
    y = drawn.y(drawn.baseline)
    right = WIDTH + (FINALS if drawn.finals else 0.0)
    return element("line", class_="baseline", x1=0.0, x2=right, y1=y, y2=y)


def _staircase(drawn: Convergence) -> str:
    """Returns a path that runs level from each turn to the next, and on to the right edge."""
    first, *others = drawn.turns
    steps = "".join(f"H{number(drawn.x(e.number))}V{number(drawn.y(e.gflop_per_s))}" for e in others)
    start = f"M{number(drawn.x(first.number))} {number(drawn.y(first.gflop_per_s))}"
    return f"{start}{steps}H{WIDTH:g}"


def _finals(drawn: Convergence) -> Markup | None:
    if not drawn.finals:
        return None
    gap = FINALS / (len(drawn.finals) + 1)
    marks = (
        element(
            "circle",
            cx=WIDTH + gap * (place + 1),
            cy=drawn.y(speed.gflop_per_s),
            r=3.5,
            data_t=str(speed.trial),
        )
        for place, speed in enumerate(drawn.finals)
    )
    return element("g", *marks, class_="finals")


def _legend(drawn: Convergence, run: Run) -> str:
    spans = [f"{phase.name} {phase.first} to {phase.last}" for phase in drawn.phases]
    words = [f"Dots: trials as first timed. Line: the best so far. Bands: {', '.join(spans)}."]
    if drawn.finals:
        words.append("Rings: the finalists, timed again in turns.")
    if drawn.failed:
        words.append("Marks below: failed trials.")
    if run.baseline is not None:
        words.append(f"Dashed: {run.baseline.name}.")
    return " ".join(words)
