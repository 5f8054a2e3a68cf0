"""Every row, in order."""

import numpy as np

from tuner.samplers.method import AbstractMethod


class Exhaustive(AbstractMethod):
    """Chooses the unseen row with the smallest number."""

    def choose(self, rng: np.random.Generator) -> int:
        return int(np.argmax(self.task.pool.unseen))
