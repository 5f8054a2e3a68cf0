"""Density ratio over the feasible rows, estimated twice: by kernels and by a Gaussian process.

The probability that a row is fast, given its knobs, and the density of fast rows over the knobs are two sides
of one ratio (Bayes' rule; Tiao et al., 2021, https://arxiv.org/abs/2102.09009). The kernels (tree-structured
Parzen estimator) learn joint patterns of good rows at once, the process learns which knobs matter, with its
uncertainty. Both give an expected improvement at every row; the row with the largest product is chosen.
"""

import numpy as np

from tuner.samplers.density import Densities
from tuner.samplers.initial_rows import is_starting, start_row
from tuner.samplers.method import AbstractMethod
from tuner.samplers.surrogate import Surrogate
from tuner.samplers.task import SearchTask

KERNEL_WEIGHT = 1.0  # exponent of the kernels' improvement in the product; that of the process is 1


class Tpe(AbstractMethod):
    """The search method "tpe": maximizes the product of the expected improvements under two models.

    The models are kernel densities (tree-structured Parzen estimator) and a Gaussian process. Pending
    configurations and failures count as slow (constant liar).
    """

    def __init__(self, task: SearchTask) -> None:
        AbstractMethod.__init__(self, task)
        self._densities = Densities(task)
        self._surrogate = Surrogate(task)

    def choose(self, rng: np.random.Generator) -> int:
        """Returns the index of the unproposed configuration with the largest product of improvements.

        At the start of a run, before models can be fitted, returns that of ``start_row``; of a large set only
        a random sample is compared (``SearchTask.scope``).
        """
        if is_starting(self.task):
            return start_row(self.task, rng)
        scope = self.task.scope(rng)
        score = self._surrogate.log_gain(scope) + KERNEL_WEIGHT * self._densities.log_gain(scope)
        return self.task.best_unseen(scope, score, rng)
