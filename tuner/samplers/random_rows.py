"""Random search without replacement, uniform over the rows."""

import numpy as np

from tuner.samplers.method import AbstractMethod


class RandomRows(AbstractMethod):
    """Random search: chooses a random configuration that was not proposed; the baseline of other methods."""

    def choose(self, rng: np.random.Generator) -> int:
        """Returns the index of a random configuration that was not proposed yet."""
        return int(self.task.pool.draw(rng, 1)[0])
