"""Exhaustive search: every row, in order."""

import numpy as np

from tuner.samplers.method import AbstractMethod


class Exhaustive(AbstractMethod):
    """Exhaustive search: chooses the configuration with the smallest index that was not proposed."""

    def choose(self, rng: np.random.Generator) -> int:
        """Returns the smallest index of a configuration that was not proposed; ``rng`` is not used."""
        return int(np.argmax(self.task.pool.unseen))
