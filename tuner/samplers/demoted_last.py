"""Two searches in sequence: over the rows that meet all preferences, then over the rows that break one.

A method fits a model to what it observes: rows that are expected to be slow would distract it. So each search
has a method and a pool of its own, and the second search begins when the first has no row left.
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
    rows: Rows  # of the whole set, in ascending order: the method's row n is `rows[n]`
    method: AbstractMethod

    @property
    def pool(self) -> Pool:
        return self.method.task.pool

    def number_of(self, row: int) -> int:
        """Returns the index of a row among the rows of this search."""
        return int(np.searchsorted(self.rows, row))


@final
class DemotedLast(AbstractMethod):
    """Searches the configurations that meet all preferences first, then those that break one.

    Two search methods of the same kind; each sees only the outcomes of its part of the feasible set.
    """

    def __init__(self, task: SearchTask, made: Callable[[SearchTask], AbstractMethod]) -> None:
        """Takes a function that makes a method for a part of the rows."""
        AbstractMethod.__init__(self, task)
        self._preferred, self._demoted = (
            _Search(np.flatnonzero(is_in), made(task.part(is_in)))
            for is_in in (task.feasible.is_preferred, ~task.feasible.is_preferred)
        )
        self._proposed = self._reported = 0  # how much of this pool was copied to the pools of both searches

    def choose(self, rng: np.random.Generator) -> int:
        """Returns the index of the next configuration: one that meets all preferences while any is left."""
        self._catch_up()
        search = self._demoted if self._preferred.pool.is_exhausted else self._preferred
        return int(search.rows[search.method.choose(rng)])

    def _catch_up(self) -> None:
        """Copies new proposals and outcomes into the pools of both searches."""
        pool = self.task.pool
        for row in pool.order[self._proposed :]:
            search = self._search_of(row)
            search.pool.propose(search.number_of(row))
        for row, value in islice(pool.outcomes.items(), self._reported, None):
            search = self._search_of(row)
            search.pool.tell(search.number_of(row), value)
        self._proposed, self._reported = len(pool.order), len(pool.outcomes)

    def _search_of(self, row: int) -> _Search:
        return self._preferred if self.task.feasible.is_preferred[row] else self._demoted
