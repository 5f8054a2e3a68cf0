"""Heat map of the best speed of every pair of values of two knobs, the most important knobs first."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

from tuner.core.candidate import Value
from tuner.core.runs import StoredTrial
from tuner.output.report.content import choices_of

VALUES_SHOWN = 24  # per side, over all knobs: limited by the width of a screen
CELL, GAP = 18.0, 6.0  # size of a cell, and the gap between two knobs, in units
LETTER = 7.0  # width of a letter of a name in units, at most
SHADES = (0.5, 0.75, 0.9, 0.95, 0.99)  # shares of the best speed above which a cell is one shade darker

Level = tuple[str, Value]  # a knob and one of its values


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
        """Returns the (knob, value) pairs that have a column: those of all knobs except the last."""
        return tuple(level for level in self.levels if level[0] != self.levels[-1][0])

    @property
    def rows(self) -> tuple[Level, ...]:
        """Returns the (knob, value) pairs that have a line of cells: those of all knobs except the first."""
        return tuple(level for level in self.levels if level[0] != self.levels[0][0])

    @property
    def cells(self) -> tuple[tuple[Level, Level], ...]:
        """Returns the (column, row) pairs that are drawn as cells; each of both is a (knob, value) pair."""
        return tuple(
            (column, row)
            for row in self.rows
            for column in self.columns
            if column[0] != row[0] and self.place(column) < self.place(row)
        )

    @property
    def margin(self) -> float:
        """Returns the margin for the names of values, to the left of the map and above, in SVG units."""
        return 10 + LETTER * max(len(level_name(level)) for level in self.levels)

    def place(self, level: Level) -> float:
        """Returns the coordinate in SVG units at which the column or row of a (knob, value) pair begins."""
        knobs = list(dict.fromkeys(knob for knob, _ in self.levels))
        return self.levels.index(level) * CELL + knobs.index(level[0]) * GAP


def heat_map_of(
    trials: tuple[StoredTrial, ...], values: Mapping[str, tuple[Value, ...]], importance: Mapping[str, float]
) -> HeatMap | None:
    """Returns the heat map of the best speed per pair of knob values; None if fewer than two knobs are shown.

    Args:
        trials: trials of one strategy; trials without a time are skipped.
        values: knob -> its values.
        importance: knob -> its importance; 0 for a missing knob.
    """
    levels = chosen_levels(values, importance)
    return HeatMap(levels, pairs_of(trials, levels)) if len({knob for knob, _ in levels}) > 1 else None


def level_name(level: Level) -> str:
    """Returns the label of a (knob, value) pair on the heat map: 'tile_m=48'."""
    return f"{level[0]}={level[1]}"


def chosen_levels(
    values: Mapping[str, tuple[Value, ...]], importance: Mapping[str, float]
) -> tuple[Level, ...]:
    """Returns at most 24 (knob, value) pairs, the most important knobs first.

    ``values``: knob -> its values; ``importance``: knob -> importance. Of a knob all values are chosen or
    none.
    """
    chosen: list[Level] = []
    for knob in sorted(values, key=lambda name: -importance.get(name, 0.0)):
        if len(chosen) + len(values[knob]) <= VALUES_SHOWN:
            chosen += [(knob, value) for value in values[knob]]
    return tuple(chosen)


def pairs_of(
    trials: tuple[StoredTrial, ...], levels: tuple[Level, ...]
) -> dict[tuple[Level, Level], PairOutcome]:
    """Returns, for each two (knob, value) pairs that a timed trial has, the outcome of such trials.

    The two pairs of a key are in the order of ``levels``. Times are those of the search.
    """
    place = {level: index for index, level in enumerate(levels)}
    times: dict[tuple[Level, Level], list[float]] = {}
    for trial in trials:
        median_s = trial.record.median_s  # not the re-measured time: it is from another time, not comparable
        if median_s is None:
            continue
        present = sorted(
            (level for level in choices_of(trial).items() if level in place), key=place.__getitem__
        )
        for pair in combinations(present, 2):
            times.setdefault(pair, []).append(median_s)
    least_s = min((min(found) for found in times.values()), default=1.0)
    return {pair: PairOutcome(len(found), least_s / min(found)) for pair, found in times.items()}
