"""Two searches, one after the other: of the rows that meet all preferences, then of those that break one.

A method models what it sees: rows that are believed slow would take its proposals from better ones. So each
search has a sampler of its own, and the second begins when the first has no row left.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from tuner.core.sampler import AbstractSampler
from tuner.samplers.proposals import Pool
from tuner.samplers.row_table import Rows
from tuner.space.feasible_set import FeasibleSet


@dataclass(frozen=True, eq=False)
class _Search:
    rows: Rows  # of the whole set, in ascending order: what the sampler's own numbers mean
    sampler: AbstractSampler

    def number_of(self, row: int) -> int:
        """Returns the sampler's own number of a row."""
        return int(np.searchsorted(self.rows, row))


@final
class DemotedLast(AbstractSampler):
    """Proposes the rows ``first`` wherever they are, then all preferred rows, then the demoted ones."""

    def __init__(
        self, feasible: FeasibleSet, made: Callable[[FeasibleSet], AbstractSampler], first: tuple[int, ...]
    ) -> None:
        """Takes what makes a sampler of some of the rows."""
        self._pool = Pool(feasible.rows)
        self._first = first
        self._is_preferred = feasible.is_preferred
        self._preferred, self._demoted = (
            _Search(np.flatnonzero(is_in), made(feasible.part(is_in)))
            for is_in in (self._is_preferred, ~self._is_preferred)
        )

    def ask(self, number: int) -> int | None:
        waiting = next((row for row in self._first if self._pool.unseen[row]), None)
        if waiting is not None:
            self.replay(number, waiting)
            return waiting
        for search in (self._preferred, self._demoted):
            own = search.sampler.ask(number)
            if own is not None:
                row = int(search.rows[own])
                self._pool.propose(row)
                return row
        return None

    def tell(self, row: int, value: float | None) -> None:
        self._pool.tell(row, value)
        search = self._search_of(row)
        search.sampler.tell(search.number_of(row), value)

    def replay(self, number: int, row: int) -> None:
        self._pool.propose(row)
        search = self._search_of(row)
        search.sampler.replay(number, search.number_of(row))

    def _search_of(self, row: int) -> _Search:
        return self._preferred if self._is_preferred[row] else self._demoted
