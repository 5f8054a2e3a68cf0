"""Stochastic hill climbing: steps from the fastest rows to neighbours in one knob."""

import numpy as np

from tuner.samplers.initial_rows import is_starting, start_row
from tuner.samplers.method import AbstractMethod

EXPLORE = 0.05  # probability of a random row: escapes local minima
CLIMBED = 3  # fastest rows whose neighbours come first


class Local(AbstractMethod):
    """Hill climbing: chooses a configuration that differs in one knob from one of the fastest.

    Where all of these were proposed, chooses one that differs from the fastest in the fewest knobs; now and
    then a random one.
    """

    def choose(self, rng: np.random.Generator) -> int:
        """Returns the index of a configuration not proposed yet, mostly a neighbour of a fast one."""
        pool = self.task.pool
        fastest = pool.fastest()
        if is_starting(self.task):
            return start_row(self.task, rng)
        if not fastest or rng.random() < EXPLORE:
            return int(pool.draw(rng, 1)[0])
        for row in fastest[:CLIMBED]:
            surrounding = [near for near in self.task.neighbours.of(row) if pool.unseen[near]]
            if surrounding:
                return int(rng.choice(surrounding))
        scope = self.task.scope(rng)
        changed = (scope.table.codes != self.task.table.codes[fastest[0]]).sum(axis=1)
        return self.task.best_unseen(scope, -changed.astype(np.float32), rng)
