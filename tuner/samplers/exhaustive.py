"""Exhaustive search: every row, in order."""

import numpy as np

from tuner.samplers.method import AbstractMethod


class Exhaustive(AbstractMethod):
    """Chooses the row with the smallest index that was not proposed."""

    def choose(self, rng: np.random.Generator) -> int:
        return int(np.argmax(self.task.pool.unseen))
