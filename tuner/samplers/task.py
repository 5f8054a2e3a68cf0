"""The input of a search method: feasible set, state of the search, and seed."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tuner.core.candidate import Candidate
from tuner.samplers.considered_rows import Scope, sampled, whole
from tuner.samplers.proposals import Pool
from tuner.samplers.row_table import Floats, Rows, RowTable
from tuner.space.feasible_set import FeasibleSet

SCORED_LIMIT = 1 << 15  # rows up to which all are scored for every proposal: 20 ms; more are sampled
BEST_ROWS = 4  # fastest rows whose neighbours belong to every sample


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The neighbours of each configuration of a feasible set: those that differ in the value of one knob.

    The neighbours of a configuration are computed at first use and then kept, so that a large set takes no
    time in advance.
    """

    feasible: FeasibleSet
    _known: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def of(self, row: int) -> tuple[int, ...]:
        """Returns the indices of the configurations that differ from configuration ``row`` in one knob.

        They are in ascending order and of the same strategy.
        """
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


@dataclass(frozen=True, eq=False)
class SearchTask:
    """What a search method works on: a feasible set, the state of its search, and the random seed.

    Methods that search a set together share it.
    """

    feasible: FeasibleSet
    pool: Pool
    seed: int

    def part(self, is_in: npt.NDArray[np.bool_]) -> "SearchTask":
        """Returns a new task for the configurations where ``is_in`` is True, with an empty history."""
        feasible = self.feasible.part(is_in)
        return SearchTask(feasible, Pool(feasible.rows), self.seed)

    @cached_property
    def table(self) -> RowTable:
        """Returns all configurations of the feasible set as integer codes; computed once."""
        return RowTable.of(self.feasible)

    @cached_property
    def neighbours(self) -> Neighbours:
        """Returns a look-up of the configurations that differ from a given one in a single knob."""
        return Neighbours(self.feasible)

    @cached_property
    def _whole(self) -> Scope:
        return whole(self.table)

    def scope(self, rng: np.random.Generator) -> Scope:
        """Returns the configurations to score for one proposal: all, or a random sample of a large set.

        A set of more than 32768 (SCORED_LIMIT) is large. Its sample holds the neighbours of the 4 fastest
        ones too, unless all of the sample were proposed. At least one was not proposed yet, while any is
        left.
        """
        if self.feasible.rows <= SCORED_LIMIT:
            return self._whole
        near = [row for best in self.pool.fastest()[:BEST_ROWS] for row in self.neighbours.of(best)]
        return sampled(self.table, self.pool, rng, near)

    def best_unseen(self, scope: Scope, score: Floats, rng: np.random.Generator) -> int:
        """Returns the index of the configuration with the highest score that was not proposed yet.

        ``score`` has one value for each configuration of ``scope``, of which one at least must not be
        proposed yet. Draws one at random where several have the highest score.
        """
        unseen = self.pool.unseen[scope.rows]
        top = score[unseen].max()
        best: Rows = scope.rows[unseen & (score >= top)]
        return int(rng.choice(best))
