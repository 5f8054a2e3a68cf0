"""Parallel coordinates: an axis per knob and one for speed, a line per trial; a script brushes them."""

import json
import math
from dataclasses import dataclass
from itertools import pairwise

from tuner.core.candidate import Value
from tuner.core.runs import StoredTrial, record_of
from tuner.output.json_documents import gflop_per_s
from tuner.output.report.axis import round_numbers
from tuner.output.report.content import choices_of, varying_knobs
from tuner.output.report.element import Markup, element, number

HEIGHT = 240.0  # of an axis
STEP_MIN, STEP_MAX = 72.0, 120.0  # between axes
RIGHT, WIDTH = 70.0, 885.0  # beyond the last axis; of the whole drawing, as wide as a page shows it
INK = 25.0  # of a group: the more lines, the paler each
LETTER = 7.0  # units that a letter of a label takes at most
NAME_LIMIT, VALUE_LIMIT = 12, 9  # letters above an axis, and beside one that has another to its left
FAILED = HEIGHT + 26  # where the lines of failed trials end
SPREAD, LANES = 1.5, 7  # units between lines of one value, and how many lie beside one another
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

    def y(self, value: str) -> float:
        """Returns where a value lies."""
        return self._apart * self.values.index(value)

    def aside(self, trial: int) -> float:
        """Returns how far the line of a trial's number lies from its value."""
        return min(SPREAD, self._apart / LANES / 2) * (trial % LANES - LANES // 2)

    @property
    def _apart(self) -> float:
        return HEIGHT / (len(self.values) - 1)


def axes_of(trials: tuple[StoredTrial, ...]) -> tuple[Axis, ...]:
    """Returns the axes of what differs among finished trials: the strategy, and knobs."""
    strategies = tuple(sorted({record_of(trial).candidate.strategy for trial in trials}))
    axes = [Axis(STRATEGY, strategies)] if len(strategies) > 1 else []
    for name, values in varying_knobs(trials).items():
        is_lacking = any(name not in choices_of(trial) for trial in trials)
        texts = (*map(str, values), ABSENT) if is_lacking else map(str, values)
        axes.append(Axis(name, tuple(dict.fromkeys(texts))))
    return tuple(axes)


def parallel(trials: tuple[StoredTrial, ...]) -> Markup | None:
    """Draws the lines of finished trials, the fastest first among them; None where nothing differs."""
    axes = axes_of(trials)
    if not axes:
        return None
    timed = [trial for trial in trials if trial.best_s is not None]
    failed = [trial for trial in trials if trial.best_s is None]
    plot = _Plot(axes, max((_speed(trial) for trial in timed), default=1.0))
    bounds = [*(math.ceil(len(timed) * share) for _, share in GROUPS), 0]
    groups = [_group("failed", plot, failed)]
    for (name, _), (last, first) in zip(GROUPS, pairwise(bounds), strict=True):
        groups.append(_group(name, plot, timed[first:last][::-1]))
    drawing = element(
        "svg",
        element("title", "Parallel coordinates of knobs and speed"),
        *groups,
        *(plot.axis(index) for index in range(len(axes))),
        plot.speed_axis(bool(failed)),
        viewBox=f"{-plot.left:g} -34 {plot.left + plot.width + RIGHT:g} {HEIGHT + 74:g}",
        width=plot.left + plot.width + RIGHT,
        role="img",
        class_="parallel",
        data_top=f"{plot.top:.6g}",
        data_height=HEIGHT,
    )
    return element("div", drawing, class_="wide")


class _Plot:
    """Where everything lies: an axis beside the other, the last one for speed."""

    def __init__(self, axes: tuple[Axis, ...], top: float) -> None:
        self.top = top  # GFLOP/s at the upper end
        self.left = 30 + LETTER * max(NAME_LIMIT / 2, *map(len, axes[0].values))
        self._axes = axes
        self._step = max(STEP_MIN, min(STEP_MAX, (WIDTH - RIGHT - self.left) / len(axes)))

    @property
    def width(self) -> float:
        return self._step * len(self._axes)

    def path(self, trial: StoredTrial) -> str:
        """Returns a line over all axes; equal values lie beside one another, not on one another."""
        choices: dict[str, Value] = {STRATEGY: record_of(trial).candidate.strategy, **choices_of(trial)}
        heights = [
            axis.y(str(choices.get(axis.name, ABSENT))) + axis.aside(trial.number) for axis in self._axes
        ]
        end = FAILED if trial.best_s is None else self._speed_y(_speed(trial))
        places = (f"{number(self._step * index)} {number(y)}" for index, y in enumerate([*heights, end]))
        return f"M{' '.join(places)}"

    def axis(self, index: int) -> Markup:
        """Draws the axis of a knob."""
        x, axis = self._step * index, self._axes[index]
        every = -(-len(axis.values) // LABELS)
        limit = VALUE_LIMIT if index else len(max(axis.values, key=len))
        labels = [_label(x - 8, axis.y(value), _short(value, limit)) for value in axis.values[::every]]
        return _axis(x, axis.name, labels, json.dumps(axis.values))

    def speed_axis(self, has_failed: bool) -> Markup:
        """Draws the last axis."""
        x = self.width + 8
        labels = [_label(x, self._speed_y(tick), f"{tick:g}", "start") for tick in round_numbers(self.top)]
        if has_failed:
            labels.append(_label(x, FAILED, "failed", "start"))
        return _axis(self.width, "GFLOP/s", labels)

    def _speed_y(self, speed: float) -> float:
        return HEIGHT * (1 - speed / self.top)


def _group(name: str, plot: _Plot, trials: list[StoredTrial]) -> Markup | None:
    if not trials:
        return None
    paths = (element("path", data_t=str(trial.id), d=plot.path(trial)) for trial in trials)
    opacity = min(0.9, max(0.05, INK / len(trials)))
    return element("g", *paths, class_=f"lines {name}", stroke_opacity=f"{opacity:.2g}")


def _speed(trial: StoredTrial) -> float:
    return gflop_per_s(record_of(trial).problem, trial.best_s) or 0.0


def _axis(x: float, name: str, labels: list[Markup], values: str | None = None) -> Markup:
    return element(
        "g",
        element("line", x1=x, x2=x, y1=0.0, y2=HEIGHT),
        element("text", _short(name, NAME_LIMIT), x=x, y=-18.0, text_anchor="middle", class_="name"),
        *labels,
        class_="axis",
        data_x=x,
        data_name=name,
        data_values=values,
    )


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}\N{HORIZONTAL ELLIPSIS}"


def _label(x: float, y: float, text: str, anchor: str = "end") -> Markup:
    return element("text", text, x=x, y=y + 4, text_anchor=anchor)
