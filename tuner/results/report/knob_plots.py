"""Plots of knobs in a report: parallel coordinates of a run's trials, and a heat map of pairs of knobs."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations, pairwise

from tuner.core.candidate import Value
from tuner.core.trials import StoredTrial
from tuner.results.output.formatting import gflop_per_s
from tuner.results.report.content import HEIGHT, Ticks, choices_of, line, round_numbers, varying_knobs

VALUES_SHOWN = 24  # per side, over all knobs: limited by the width of a screen
# size of a cell, and the gap between two knobs, in units
CELL = 18.0
GAP = 6.0
LETTER = 7.0  # width of a letter of a name in units, at most
SHADES = (0.5, 0.75, 0.9, 0.95, 0.99)  # shares of the best speed from which on a cell is one shade darker

Level = tuple[str, Value]  # a knob and one of its values
# distance between axes
STEP_MIN = 72.0
STEP_MAX = 120.0
# margin right of the last axis; width of the whole plot, as a page shows it
RIGHT = 70.0
WIDTH = 885.0
INK = 25.0  # total opacity of a group: the more lines, the paler each
# letters of an axis's name, and of a label with an axis to its left
NAME_LIMIT = 12
VALUE_LIMIT = 9
FAILED = HEIGHT + 26  # y coordinate at which the lines of failed trials end
# units between lines of one value, and how many lines lie side by side
SPREAD = 1.5
LANES = 7
LABELS = 12  # of an axis, about; more values are thinned out evenly
STRATEGY = "strategy"
ABSENT = "-"  # value of a knob that a trial's strategy does not have
# (group of lines, share): the fastest share of the timed trials, without those of the next, faster group
GROUPS = (("slow", 1.0), ("fast", 0.1), ("fastest", 0.01))


@dataclass(frozen=True)
class PairOutcome:
    """A cell of the heat map: the number and the best speed of the trials that have both values of a pair."""

    trials: int
    share: float  # speed of the pair's best trial, relative to the best trial of the map

    @property
    def shade(self) -> int:
        """Returns the shade of the cell: 0 (lightest) for slow pairs to 5 for the fastest."""
        return sum(self.share >= bound for bound in SHADES)


@dataclass(frozen=True)
class HeatMap:
    """A heat map of the best speed per pair of knob values, drawn as a lower triangle."""

    levels: tuple[Level, ...]  # ordered, values of one knob adjacent; of at least two knobs
    pairs: Mapping[tuple[Level, Level], PairOutcome]

    @property
    def columns(self) -> tuple[Level, ...]:
        """Returns the levels of the columns: all but those of the last knob."""
        return tuple(level for level in self.levels if level[0] != self.levels[-1][0])

    @property
    def rows(self) -> tuple[Level, ...]:
        """Returns the levels of the rows: all but those of the first knob."""
        return tuple(level for level in self.levels if level[0] != self.levels[0][0])

    @property
    def cells(self) -> tuple[tuple[Level, Level], ...]:
        """Returns the cells (column, row) below the diagonal: pairs of values of two knobs."""
        return tuple(
            (column, row)
            for row in self.rows
            for column in self.columns
            if column[0] != row[0] and self.position(column) < self.position(row)
        )

    @property
    def margin(self) -> float:
        """Returns the space for the labels, in SVG units."""
        return 10 + LETTER * max(len(level_name(level)) for level in self.levels)

    def position(self, level: Level) -> float:
        """Returns the coordinate of a level's row or column, in SVG units: knobs have a gap between them."""
        knobs = list(dict.fromkeys(knob for knob, _ in self.levels))
        return self.levels.index(level) * CELL + knobs.index(level[0]) * GAP


def heat_map_of(
    trials: tuple[StoredTrial, ...], values: Mapping[str, tuple[Value, ...]], importance: Mapping[str, float]
) -> HeatMap | None:
    """Returns the heat map of best speeds of at most 24 knob values.

    None if they are of fewer than two knobs. ``values``: knob -> its values; ``importance``: knob ->
    importance, 0 to 1; important knobs come first.
    """
    levels = chosen_levels(values, importance)
    if len({knob for knob, _ in levels}) > 1:
        return HeatMap(levels, pairs_of(trials, levels))
    return None


def level_name(level: Level) -> str:
    """Returns the label of a (knob, value) pair on the heat map: 'tile_m=48'."""
    return f"{level[0]}={level[1]}"


def chosen_levels(
    values: Mapping[str, tuple[Value, ...]], importance: Mapping[str, float]
) -> tuple[Level, ...]:
    """Returns at most 24 (knob, value) pairs, those of the most important knobs first.

    A knob has all its values in the result, or none.
    """
    chosen: list[Level] = []
    for knob in sorted(values, key=lambda name: -importance.get(name, 0.0)):
        if len(chosen) + len(values[knob]) <= VALUES_SHOWN:
            chosen += [(knob, value) for value in values[knob]]
    return tuple(chosen)


def pairs_of(
    trials: tuple[StoredTrial, ...], levels: tuple[Level, ...]
) -> dict[tuple[Level, Level], PairOutcome]:
    """Returns the outcome of the timed trials that have both of two (knob, value) pairs, by these pairs."""
    order = {level: index for index, level in enumerate(levels)}
    times: dict[tuple[Level, Level], list[float]] = {}
    for trial in trials:
        median_s = trial.record.median_s  # not the final time: times of two rounds do not compare
        if median_s is None:
            continue
        present = sorted(
            (level for level in choices_of(trial).items() if level in order), key=order.__getitem__
        )
        for pair in combinations(present, 2):
            times.setdefault(pair, []).append(median_s)
    least_s = min(map(min, times.values()), default=1.0)
    return {pair: PairOutcome(len(times_s), least_s / min(times_s)) for pair, times_s in times.items()}


@dataclass(frozen=True)
class Axis:
    """The axis of a knob or the strategy in a parallel-coordinates plot: its values, from the top."""

    name: str
    values: tuple[str, ...]

    @property
    def values_json(self) -> str:
        """Returns the values of the axis as a JSON list, for the script of the page."""
        return json.dumps(self.values)

    @property
    def short_name(self) -> str:
        return _short(self.name, NAME_LIMIT)

    def labels(self, limit: int | None = None) -> Ticks:
        """Returns (y, label) of an even sample of the values, cut to ``limit`` letters (None: not cut)."""
        every = -(-len(self.values) // LABELS)
        return tuple((self.y(value), _short(value, limit or len(value))) for value in self.values[::every])

    def y(self, value: str) -> float:
        return self._spacing * self.values.index(value)

    def aside(self, trial: int) -> float:
        """Returns the y offset, in SVG units, that separates the lines of trials with equal values.

        ``trial``: number of the trial; the offsets repeat after 7 trials.
        """
        return min(SPREAD, self._spacing / LANES / 2) * (trial % LANES - LANES // 2)

    @property
    def _spacing(self) -> float:
        return HEIGHT / max(1, len(self.values) - 1)  # one value, if all print the same


@dataclass(frozen=True)
class LineGroup:
    """Trials whose lines a plot draws in the same style: failed ones, or a share of the timed ones."""

    name: str
    trials: tuple[StoredTrial, ...]  # the fastest last

    @property
    def opacity(self) -> str:
        """Returns the opacity of each line as SVG text, 0.05 to 0.9: the more lines, the paler."""
        return f"{min(0.9, max(0.05, INK / len(self.trials))):.2g}"


@dataclass(frozen=True)
class Parallel:
    """A parallel-coordinates plot: an axis per knob, then the axis of speed, and a line per trial."""

    axes: tuple[Axis, ...]  # of the strategy, if several, and of knobs
    groups: tuple[LineGroup, ...]  # failed trials first, the fastest trials last
    top: float  # GFLOP/s at the upper end

    @property
    def left(self) -> float:
        """Returns the margin left of the first axis, for its labels, in SVG units."""
        return 30 + LETTER * max(NAME_LIMIT / 2, *map(len, self.axes[0].values))

    @property
    def step(self) -> float:
        """Returns the distance between axes, in SVG units."""
        return max(STEP_MIN, min(STEP_MAX, (WIDTH - RIGHT - self.left) / len(self.axes)))

    @property
    def right(self) -> float:
        """Returns the x coordinate of the axis of speed; the first axis is at 0."""
        return self.step * len(self.axes)

    @property
    def width(self) -> float:
        return self.left + self.right + RIGHT

    @property
    def speeds(self) -> Ticks:
        """Returns the ticks of the speed axis (y, label in GFLOP/s), then 'failed' if a trial has no time."""
        ticks = tuple((self._speed_y(tick), f"{tick:g}") for tick in round_numbers(self.top))
        if self.groups[0].name == "failed":
            return (*ticks, (FAILED, "failed"))
        return ticks

    def labels(self, index: int) -> Ticks:
        """Returns (y, label) of the values of the axis ``index``; labels between two axes are cut."""
        return self.axes[index].labels(VALUE_LIMIT if index else None)

    def path(self, trial: StoredTrial) -> str:
        """Returns the SVG path of a trial's line: its value on each axis, then its speed, or "failed"."""
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
    """Returns the plot of ``trials``, sorted by time; None if all have the same configuration."""
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
    """Returns an axis for the strategy, if the trials have several, and for each knob whose value varies."""
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
    if len(text) <= limit:
        return text
    return f"{text[: limit - 1]}\N{HORIZONTAL ELLIPSIS}"
