"""Parallel coordinates: an axis per knob and one for speed, a line per trial; a script brushes them."""

import json
import math
from dataclasses import dataclass
from itertools import pairwise

from tuner.core.candidate import Value
from tuner.core.runs import StoredTrial
from tuner.output.json_documents import gflop_per_s
from tuner.output.report.content import choices_of, varying_knobs
from tuner.output.report.drawing import HEIGHT, Ticks, line, round_numbers

STEP_MIN, STEP_MAX = 72.0, 120.0  # between axes
RIGHT, WIDTH = 70.0, 885.0  # beyond the last axis; of the whole drawing, as wide as a page shows it
INK = 25.0  # of a group: the more lines, the paler each
LETTER = 7.0  # units that a letter of a label takes at most
NAME_LIMIT, VALUE_LIMIT = 12, 9  # letters above an axis, and of a value that has an axis to its left
FAILED = HEIGHT + 26  # where the lines of failed trials end
SPREAD, LANES = 1.5, 7  # units between lines of one value, and how many lie side by side
LABELS = 12  # of an axis; of more values every so many is named
STRATEGY = "strategy"
ABSENT = "-"  # a knob that a strategy does not have
# Groups of lines, drawn one over the other: the share of the timed trials that is faster than its slowest
GROUPS = (("slow", 1.0), ("fast", 0.1), ("fastest", 0.01))


@dataclass(frozen=True)
class Axis:
    """A knob with its values from the top, two or more."""

    name: str
    values: tuple[str, ...]

    @property
    def values_json(self) -> str:
        """Returns the values for the script."""
        return json.dumps(self.values)

    @property
    def short_name(self) -> str:
        """Returns what stands above it."""
        return _short(self.name, NAME_LIMIT)

    def labels(self, limit: int | None = None) -> Ticks:
        """Returns the values that are named, each in so many letters."""
        every = -(-len(self.values) // LABELS)
        return tuple((self.y(value), _short(value, limit or len(value))) for value in self.values[::every])

    def y(self, value: str) -> float:
        """Returns where a value lies."""
        return self._apart * self.values.index(value)

    def aside(self, trial: int) -> float:
        """Returns how far the line of a trial's number lies from its value."""
        return min(SPREAD, self._apart / LANES / 2) * (trial % LANES - LANES // 2)

    @property
    def _apart(self) -> float:
        return HEIGHT / (len(self.values) - 1)


@dataclass(frozen=True)
class LineGroup:
    """Lines that are drawn alike."""

    name: str
    trials: tuple[StoredTrial, ...]  # the fastest last

    @property
    def opacity(self) -> str:
        """Returns how much of what lies below a line hides."""
        return f"{min(0.9, max(0.05, INK / len(self.trials))):.2g}"


@dataclass(frozen=True)
class Parallel:
    """The axes side by side, the last one for speed, and the lines over them."""

    axes: tuple[Axis, ...]  # of knobs, and of the strategy
    groups: tuple[LineGroup, ...]  # the failed, then the faster the later
    top: float  # GFLOP/s at the upper end

    @property
    def left(self) -> float:
        """Returns the room for the values of the first axis."""
        return 30 + LETTER * max(NAME_LIMIT / 2, *map(len, self.axes[0].values))

    @property
    def step(self) -> float:
        """Returns how far axes lie apart."""
        return max(STEP_MIN, min(STEP_MAX, (WIDTH - RIGHT - self.left) / len(self.axes)))

    @property
    def right(self) -> float:
        """Returns where the axis of speed lies."""
        return self.step * len(self.axes)

    @property
    def width(self) -> float:
        """Returns the width of the whole drawing."""
        return self.left + self.right + RIGHT

    @property
    def speeds(self) -> Ticks:
        """Returns what stands at the last axis."""
        ticks = tuple((self._speed_y(tick), f"{tick:g}") for tick in round_numbers(self.top))
        return (*ticks, (FAILED, "failed")) if self.groups[0].name == "failed" else ticks

    def labels(self, index: int) -> Ticks:
        """Returns the values named at an axis, short where another axis lies to the left."""
        return self.axes[index].labels(VALUE_LIMIT if index else None)

    def path(self, trial: StoredTrial) -> str:
        """Returns a line over all axes; equal values lie side by side, not on one another."""
        choices: dict[str, Value] = {STRATEGY: trial.record.candidate.strategy, **choices_of(trial)}
        heights = [
            axis.y(str(choices.get(axis.name, ABSENT))) + axis.aside(trial.number) for axis in self.axes
        ]
        end = FAILED if trial.best_s is None else self._speed_y(_speed(trial))
        step = self.step
        return line((step * index, y) for index, y in enumerate([*heights, end]))

    def _speed_y(self, speed: float) -> float:
        return HEIGHT * (1 - speed / self.top)


def parallel_of(trials: tuple[StoredTrial, ...]) -> Parallel | None:
    """Returns the drawing of finished trials, the fastest first among them; None where nothing differs."""
    axes = axes_of(trials)
    if not axes:
        return None
    timed = tuple(trial for trial in trials if trial.best_s is not None)
    bounds = [*(math.ceil(len(timed) * share) for _, share in GROUPS), 0]
    groups = [LineGroup("failed", tuple(trial for trial in trials if trial.best_s is None))]
    for (name, _), (last, first) in zip(GROUPS, pairwise(bounds), strict=True):
        groups.append(LineGroup(name, timed[first:last][::-1]))
    drawn = tuple(group for group in groups if group.trials)
    return Parallel(axes, drawn, max(map(_speed, timed), default=1.0))


def axes_of(trials: tuple[StoredTrial, ...]) -> tuple[Axis, ...]:
    """Returns the axes of what differs among finished trials: the strategy, and knobs."""
    strategies = tuple(sorted({trial.record.candidate.strategy for trial in trials}))
    axes = [Axis(STRATEGY, strategies)] if len(strategies) > 1 else []
    for name, values in varying_knobs(trials).items():
        is_lacking = any(name not in choices_of(trial) for trial in trials)
        texts = (*map(str, values), ABSENT) if is_lacking else map(str, values)
        axes.append(Axis(name, tuple(dict.fromkeys(texts))))
    return tuple(axes)


def _speed(trial: StoredTrial) -> float:
    return gflop_per_s(trial.record.problem, trial.best_s) or 0.0


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}\N{HORIZONTAL ELLIPSIS}"
