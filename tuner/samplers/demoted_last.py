"""Two searches, one after the other: of the rows that meet all preferences, then of those that break one.

A method models what it sees: rows that are believed slow would take its proposals from better ones. So each
search has a method and a pool of its own, and the second begins when the first has no row left.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import final

import numpy as np

from tuner.samplers.method import AbstractMethod
from tuner.samplers.proposals import Pool
from tuner.samplers.row_table import Rows
from tuner.samplers.task import SearchTask


@dataclass(frozen=True, eq=False)
class _Search:
    rows: Rows  # of the whole set, in ascending order: what the method's own numbers mean
    method: AbstractMethod

    @property
    def pool(self) -> Pool:
        return self.method.task.pool

    def number_of(self, row: int) -> int:
        """Returns the method's own number of a row."""
        return int(np.searchsorted(self.rows, row))


@final
class DemotedLast(AbstractMethod):
    """Chooses all preferred rows, then the demoted ones."""

    def __init__(self, task: SearchTask, made: Callable[[SearchTask], AbstractMethod]) -> None:
        """Takes what makes a method for some of the rows."""
        AbstractMethod.__init__(self, task)
        self._preferred, self._demoted = (
            _Search(np.flatnonzero(is_in), made(task.part(is_in)))
            for is_in in (task.feasible.is_preferred, ~task.feasible.is_preferred)
        )
        self._proposed = self._told = 0  # what the pools of both searches know of this pool

    def choose(self, rng: np.random.Generator) -> int:
        self._catch_up()
        search = self._demoted if self._preferred.pool.is_exhausted else self._preferred
        return int(search.rows[search.method.choose(rng)])

    def _catch_up(self) -> None:
        """Takes proposals and outcomes over into the pools of both searches."""
        pool = self.task.pool
        for row in pool.order[self._proposed :]:
            search = self._search_of(row)
            search.pool.propose(search.number_of(row))
        for row, value in islice(pool.outcomes.items(), self._told, None):
            search = self._search_of(row)
            search.pool.tell(search.number_of(row), value)
        self._proposed, self._told = len(pool.order), len(pool.outcomes)

    def _search_of(self, row: int) -> _Search:
        return self._preferred if self.task.feasible.is_preferred[row] else self._demoted
