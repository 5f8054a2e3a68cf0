"""The rows that differ from a row in one knob."""

from dataclasses import dataclass, field

from tuner.core.candidate import Candidate
from tuner.space.feasible_set import FeasibleSet


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The neighbours of each row, found when they are asked for: a set of any size costs nothing before."""

    feasible: FeasibleSet
    _known: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def of(self, row: int) -> tuple[int, ...]:
        """Returns the allowed combinations that have one other value than the row, in ascending order."""
        if row not in self._known:
            self._known[row] = tuple(sorted(self._found(row)))
        return self._known[row]

    def _found(self, row: int) -> list[int]:
        candidate = self.feasible.candidate(row)
        values = dict(candidate.choices)
        space = next(one for one in self.feasible.spaces if one.strategy == candidate.strategy)
        moves = (
            Candidate.of(space.strategy, {**values, knob.name: choice})
            for knob in space.knobs
            for choice in knob.choices
            if choice != values[knob.name]
        )
        rows = (self.feasible.row_of(move) for move in moves)
        return [found for found in rows if found is not None]
