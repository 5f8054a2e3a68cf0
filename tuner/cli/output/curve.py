"""How a search converged, as the geometry of a drawing: trials as dots, the best so far as a line."""

import math
from dataclasses import dataclass

from tuner.cli.output.json_documents import gflop_per_s
from tuner.core.runs import Run, StoredTrial

WIDTH, HEIGHT = 720, 220  # of the plotting area, in the drawing's own units
DOTS = 800  # drawn; of more trials every so many is left out, but none that the line turns at
TICKS = 5  # about so many on each axis


@dataclass(frozen=True)
class Tick:
    """A number on an axis."""

    at: float
    text: str


@dataclass(frozen=True)
class Curve:
    """A drawing: x is the number of the trial, y its speed; y counts from the top."""

    dots: tuple[tuple[float, float], ...]  # measured
    failed: tuple[float, ...]  # x of failed trials
    line: str  # points of the best so far, as SVG takes them
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    baseline_y: float | None  # None: not measured
    trials: int
    best: float  # GFLOP/s
    width: int = WIDTH
    height: int = HEIGHT


def curve_of(run: Run, trials: tuple[StoredTrial, ...]) -> Curve | None:
    """Returns the curve of a run by first timings; None when nothing was timed."""
    speeds = _speeds(trials)
    if not speeds:
        return None
    count = max(trial.number for trial in trials) + 1
    baseline_s = None if run.baseline is None else run.baseline.measurement.median_s
    baseline = gflop_per_s(run.settings.problem, baseline_s)
    top = 1.05 * max([speed for _, speed in speeds] + ([] if baseline is None else [baseline]))

    def place(number: int, speed: float) -> tuple[float, float]:
        return _x(number, count), round(HEIGHT * (1 - speed / top), 1)

    turns = _turns(speeds)
    step = math.ceil(len(speeds) / DOTS)
    failures = [trial.number for trial in trials if trial.record and trial.record.status == "failed"]
    return Curve(
        dots=tuple(place(*each) for each in dict.fromkeys((*turns, *speeds[::step]))),
        failed=tuple(_x(number, count) for number in failures[:: math.ceil(max(1, len(failures)) / DOTS)]),
        line=_staircase([place(*each) for each in turns]),
        x_ticks=tuple(Tick(_x(int(n), count), f"{n:g}") for n in _round_numbers(count) if n == int(n)),
        y_ticks=tuple(Tick(place(0, n)[1], f"{n:g}") for n in _round_numbers(top)),
        baseline_y=None if baseline is None else place(0, baseline)[1],
        trials=count,
        best=turns[-1][1],
    )


def _speeds(trials: tuple[StoredTrial, ...]) -> list[tuple[int, float]]:
    """Returns (number, GFLOP/s) of the timed trials, in order."""
    found = []
    for trial in sorted(trials, key=lambda each: each.number):
        speed = None if trial.record is None else gflop_per_s(trial.record.problem, trial.record.median_s)
        if speed is not None:
            found.append((trial.number, speed))
    return found


def _turns(speeds: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """Returns the trials that were faster than all before."""
    turns: list[tuple[int, float]] = []
    for number, speed in speeds:
        if not turns or speed > turns[-1][1]:
            turns.append((number, speed))
    return turns


def _staircase(turns: list[tuple[float, float]]) -> str:
    """Returns the points of a line that runs level from each turn to the next, and on to the right edge."""
    points = [turns[0]]
    for x, y in turns[1:]:
        points += [(x, points[-1][1]), (x, y)]
    points.append((WIDTH, points[-1][1]))
    return " ".join(f"{x:g},{y:g}" for x, y in points)


def _x(number: int, count: int) -> float:
    return round(WIDTH * (number + 0.5) / count, 1)


def _round_numbers(top: float) -> list[float]:
    """Returns about TICKS round numbers from 0 on, below ``top``."""
    raw = top / TICKS
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw)
    return [round(step * index, 12) for index in range(math.ceil(top / step))]
