"""A search method as Optuna knows it: suggests the one parameter ``row``."""

import abc
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import FrozenTrial
from threadpoolctl import ThreadpoolController

from tuner.samplers.task import SearchTask

NUMBER = "number"  # user attribute of a trial: its number in the run, which a replay keeps


class AbstractMethod(BaseSampler):
    """Proposes the rows ``first``, then whichever unseen row ``choose`` returns. Final subclasses only.

    A choice depends on the pool and on ``np.random.default_rng((seed, number))``, on nothing else.
    """

    def __init__(self, task: SearchTask) -> None:
        self.task = task
        self._threads = ThreadpoolController()

    @abc.abstractmethod
    def choose(self, rng: np.random.Generator) -> int:
        """Returns an unseen row; there is at least one."""

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Returns nothing: one parameter has no joint distribution."""
        return {}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Returns nothing, for the same reason."""
        return {}

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> int:
        """Returns the next of the first rows, then what the method chooses."""
        waiting = next((row for row in self.task.first if self.task.pool.unseen[row]), None)
        if waiting is not None:
            return waiting
        # one thread: sums of floats keep their order, and the measured kernel its cores
        with self._threads.limit(limits=1, user_api="blas"):
            return self.choose(np.random.default_rng((self.task.seed, trial.user_attrs[NUMBER])))
