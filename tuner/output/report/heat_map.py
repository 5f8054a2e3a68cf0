"""The best speed of every pair of values of two knobs, as one map: the knobs that matter most come first."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

from tuner.core.candidate import Value
from tuner.core.runs import StoredTrial
from tuner.output.report.content import choices_of

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

    @property
    def shade(self) -> int:
        """Returns how dark the cell is."""
        return sum(self.share >= bound for bound in SHADES)


@dataclass(frozen=True)
class HeatMap:
    """The lower half of the map: rows are the later knobs, columns the earlier ones."""

    levels: tuple[Level, ...]  # in order, the values of a knob together; of two knobs at least
    pairs: Mapping[tuple[Level, Level], PairOutcome]

    @property
    def columns(self) -> tuple[Level, ...]:
        """Returns the values of all knobs but the last."""
        return tuple(level for level in self.levels if level[0] != self.levels[-1][0])

    @property
    def rows(self) -> tuple[Level, ...]:
        """Returns the values of all knobs but the first."""
        return tuple(level for level in self.levels if level[0] != self.levels[0][0])

    @property
    def cells(self) -> tuple[tuple[Level, Level], ...]:
        """Returns the pairs of a column and a row that have a cell."""
        return tuple(
            (column, row)
            for row in self.rows
            for column in self.columns
            if column[0] != row[0] and self.place(column) < self.place(row)
        )

    @property
    def margin(self) -> float:
        """Returns the room that names need, to the left and above."""
        return 10 + LETTER * max(len(level_name(level)) for level in self.levels)

    def place(self, level: Level) -> float:
        """Returns where a value's column or row begins."""
        knobs = list(dict.fromkeys(knob for knob, _ in self.levels))
        return self.levels.index(level) * CELL + knobs.index(level[0]) * GAP


def heat_map_of(
    trials: tuple[StoredTrial, ...], values: Mapping[str, tuple[Value, ...]], importance: Mapping[str, float]
) -> HeatMap | None:
    """Returns the map of knobs' values that timed trials have; None of fewer than two knobs."""
    levels = chosen_levels(values, importance)
    return HeatMap(levels, pairs_of(trials, levels)) if len({knob for knob, _ in levels}) > 1 else None


def level_name(level: Level) -> str:
    """Returns a value as it is named on the map."""
    return f"{level[0]}={level[1]}"


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
        median_s = trial.record.median_s  # finals are of other minutes
        if median_s is None:
            continue
        present = sorted(
            (level for level in choices_of(trial).items() if level in place), key=place.__getitem__
        )
        for pair in combinations(present, 2):
            times.setdefault(pair, []).append(median_s)
    least_s = min((min(found) for found in times.values()), default=1.0)
    return {pair: PairOutcome(len(found), least_s / min(found)) for pair, found in times.items()}
