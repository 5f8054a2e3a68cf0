"""Random search without replacement, uniform over the rows."""

import numpy as np

from tuner.samplers.method import AbstractMethod


class RandomRows(AbstractMethod):
    """Chooses any row that was not proposed: the baseline that every other method has to beat."""

    def choose(self, rng: np.random.Generator) -> int:
        return int(self.task.pool.draw(rng, 1)[0])
