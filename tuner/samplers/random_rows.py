"""Rows drawn without replacement, each as likely as any other."""

import numpy as np

from tuner.samplers.method import AbstractMethod


class RandomRows(AbstractMethod):
    """Chooses any unseen row: the baseline that every other method has to beat."""

    def choose(self, rng: np.random.Generator) -> int:
        return int(self.task.pool.draw(rng, 1)[0])
