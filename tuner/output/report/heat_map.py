"""The best speed of every pair of values of two knobs, as one map: the knobs that matter most come first."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

from tuner.core.candidate import Value
from tuner.core.runs import StoredTrial
from tuner.output.report.content import choices_of
from tuner.output.report.element import Markup, element

VALUES_SHOWN = 24  # on a side, all knobs together: a screen is no wider
CELL, GAP = 18.0, 6.0  # units; between two knobs
LETTER = 7.0  # units that a letter of a name takes at most
SHADES = (0.5, 0.75, 0.9, 0.95, 0.99)  # shares of the best speed from which a cell is darker

Level = tuple[str, Value]  # a knob and one of its values


@dataclass(frozen=True)
class PairOutcome:
    """Trials that have both values."""

    trials: int
    share: float  # speed of the best of them, of that of the best of all


def chosen_levels(
    values: Mapping[str, tuple[Value, ...]], importance: Mapping[str, float]
) -> tuple[Level, ...]:
    """Returns the values of the most important knobs, as many knobs as fit; a knob comes whole or not."""
    chosen: list[Level] = []
    for knob in sorted(values, key=lambda name: -importance.get(name, 0.0)):
        if len(chosen) + len(values[knob]) <= VALUES_SHOWN:
            chosen += [(knob, value) for value in values[knob]]
    return tuple(chosen)


def pairs_of(
    trials: tuple[StoredTrial, ...], levels: tuple[Level, ...]
) -> dict[tuple[Level, Level], PairOutcome]:
    """Returns what became of each pair of values of two knobs that a timed trial has; levels as ordered."""
    place = {level: index for index, level in enumerate(levels)}
    times: dict[tuple[Level, Level], list[float]] = {}
    for trial in trials:
        median_s = None if trial.record is None else trial.record.median_s  # finals are of other minutes
        if median_s is None:
            continue
        present = sorted(
            (level for level in choices_of(trial).items() if level in place), key=place.__getitem__
        )
        for pair in combinations(present, 2):
            times.setdefault(pair, []).append(median_s)
    least_s = min((min(found) for found in times.values()), default=1.0)
    return {pair: PairOutcome(len(found), least_s / min(found)) for pair, found in times.items()}


def heat_map(
    levels: tuple[Level, ...],
    pairs: Mapping[tuple[Level, Level], PairOutcome],
    is_trusted: bool = True,  # the times: shares are said
) -> Markup:
    """Draws the lower half of the map: rows are the later knobs, columns the earlier ones."""
    at = _places(levels)
    last = levels[-1][0]
    columns = [level for level in levels if level[0] != last]
    rows = [level for level in levels if level[0] != levels[0][0]]
    cells = [
        _cell(at[column], at[row], (column, row), pairs, is_trusted)
        for row in rows
        for column in columns
        if at[column] < at[row] and column[0] != row[0]
    ]
    names = [element("text", _name(row), x=-6.0, y=at[row] + CELL - 5, text_anchor="end") for row in rows]
    names += [_upright(_name(column), at[column] + CELL - 5, at[rows[0]] - 6) for column in columns]
    margin = 10 + LETTER * max(len(_name(level)) for level in levels)
    low, size = at[rows[0]], at[levels[-1]] + CELL
    width = margin + at[columns[-1]] + CELL
    return element(
        "svg",
        element("title", "Best speed by pairs of knob values"),
        *names,
        *cells,
        viewBox=f"{-margin:g} {low - margin:g} {width:g} {margin + size - low:g}",
        role="img",
        class_="map",
        width=width,
    )


def _places(levels: tuple[Level, ...]) -> dict[Level, float]:
    knobs = list(dict.fromkeys(knob for knob, _ in levels))
    return {level: index * CELL + knobs.index(level[0]) * GAP for index, level in enumerate(levels)}


def _cell(
    x: float,
    y: float,
    pair: tuple[Level, Level],
    pairs: Mapping[tuple[Level, Level], PairOutcome],
    is_trusted: bool,
) -> Markup:
    found = pairs.get(pair)
    words = f"{_name(pair[0])}, {_name(pair[1])}: "
    if found is None:
        words, shade = f"{words}not timed", "none"
    else:
        words += f"{found.share:.1%} of the best, " * is_trusted + f"{found.trials} timed"
        shade = str(sum(found.share >= bound for bound in SHADES))
    size = CELL - 1
    return element(
        "g",
        element("title", words),
        element("rect", x=x, y=y, width=size, height=size, class_=f"shade-{shade}"),
    )


def _upright(text: str, x: float, y: float) -> Markup:
    return element("text", text, transform=f"translate({x:g} {y:g}) rotate(-90)")


def _name(level: Level) -> str:
    return f"{level[0]}={level[1]}"
