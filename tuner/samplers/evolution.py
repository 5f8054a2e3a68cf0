"""A steady-state genetic algorithm: children of fast rows, each replaced by the nearest feasible row.

Goldberg and Deb, 1991, https://doi.org/10.1016/B978-0-08-050684-5.50008-2, for tournaments of two; uniform
crossover and one mutation per child on average are standard.
"""

import numpy as np

from tuner.samplers.initial_rows import is_starting, start_row
from tuner.samplers.method import AbstractMethod
from tuner.samplers.row_table import Codes

POPULATION = 20  # the fastest rows, and the random rows of the start
CROSSOVER = 0.5  # probability that a knob comes from the second parent


class Evolution(AbstractMethod):
    """A genetic algorithm: crosses two of the 20 fastest configurations and mutates the child.

    Proposes the configuration nearest to the child that was not proposed yet. The first 20 proposals are
    starting points and random configurations.
    """

    def choose(self, rng: np.random.Generator) -> int:
        """Returns the index of the configuration nearest to a child of two fast ones, not proposed yet.

        For the first 20 proposals, and while none has a time, that of a starting point or a random one. Of a
        large set only a random sample is compared (``SearchTask.scope``).
        """
        pool = self.task.pool
        if is_starting(self.task):
            return start_row(self.task, rng)
        parents = pool.fastest()[:POPULATION]
        if len(pool.order) < POPULATION or not parents:
            return int(pool.draw(rng, 1)[0])
        child = self._child(rng, parents)
        scope = self.task.scope(rng)
        return self.task.best_unseen(scope, -scope.table.differences(child), rng)

    def _child(self, rng: np.random.Generator, parents: list[int]) -> Codes:
        codes = self.task.table.codes
        columns = self.task.table.columns
        # a tournament of two: the smaller index is the faster row
        one, other = (parents[int(rng.integers(len(parents), size=2).min())] for _ in range(2))
        child = np.where(rng.random(len(columns)) < CROSSOVER, codes[other], codes[one])
        mutated = rng.integers([column.levels for column in columns])
        result: Codes = np.where(rng.random(len(columns)) < 1 / max(1, len(columns)), mutated, child)
        return result
