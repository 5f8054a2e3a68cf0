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
    """The trials that have both values of a pair."""

    trials: int
    share: float  # speed of the pair's best trial, relative to the best trial of the map

    @property
    def shade(self) -> int:
        """Returns the shade of the cell, 0 (lightest) to len(SHADES)."""
        return sum(self.share >= bound for bound in SHADES)


@dataclass(frozen=True)
class HeatMap:
    """The lower triangle of the map: rows are the later knobs, columns the earlier knobs."""

    levels: tuple[Level, ...]  # ordered, values of one knob adjacent; of at least two knobs
    pairs: Mapping[tuple[Level, Level], PairOutcome]

    @property
    def columns(self) -> tuple[Level, ...]:
        """Returns the values of all knobs except the last."""
        return tuple(level for level in self.levels if level[0] != self.levels[-1][0])

    @property
    def rows(self) -> tuple[Level, ...]:
        """Returns the values of all knobs except the first."""
        return tuple(level for level in self.levels if level[0] != self.levels[0][0])

    @property
    def cells(self) -> tuple[tuple[Level, Level], ...]:
        """Returns the (column, row) pairs of the lower triangle, which are drawn as cells."""
        return tuple(
            (column, row)
            for row in self.rows
            for column in self.columns
            if column[0] != row[0] and self.place(column) < self.place(row)
        )

    @property
    def margin(self) -> float:
        """Returns the margin for names, to the left and above, in units."""
        return 10 + LETTER * max(len(level_name(level)) for level in self.levels)

    def place(self, level: Level) -> float:
        """Returns the coordinate at which a value's column or row begins."""
        knobs = list(dict.fromkeys(knob for knob, _ in self.levels))
        return self.levels.index(level) * CELL + knobs.index(level[0]) * GAP


def heat_map_of(
    trials: tuple[StoredTrial, ...], values: Mapping[str, tuple[Value, ...]], importance: Mapping[str, float]
) -> HeatMap | None:
    """Returns the heat map of timed trials; None if fewer than two knobs vary.

    Args:
        trials: trials of one strategy; trials without a time are skipped.
        values: knob -> its values.
        importance: knob -> its importance; 0 for a missing knob.
    """
    levels = chosen_levels(values, importance)
    return HeatMap(levels, pairs_of(trials, levels)) if len({knob for knob, _ in levels}) > 1 else None


def level_name(level: Level) -> str:
    """Returns the label of a knob's value on the map: 'tile_m=48'."""
    return f"{level[0]}={level[1]}"


def chosen_levels(
    values: Mapping[str, tuple[Value, ...]], importance: Mapping[str, float]
) -> tuple[Level, ...]:
    """Returns at most VALUES_SHOWN values of the most important knobs; of a knob all its values or none."""
    chosen: list[Level] = []
    for knob in sorted(values, key=lambda name: -importance.get(name, 0.0)):
        if len(chosen) + len(values[knob]) <= VALUES_SHOWN:
            chosen += [(knob, value) for value in values[knob]]
    return tuple(chosen)


def pairs_of(
    trials: tuple[StoredTrial, ...], levels: tuple[Level, ...]
) -> dict[tuple[Level, Level], PairOutcome]:
    """Returns the outcome of each pair of values that a timed trial has; pairs are ordered as ``levels``."""
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
