"""A search method as Optuna knows it: suggests the one parameter ``row``."""

import abc
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import FrozenTrial

from tuner.feasible import FeasibleSet
from tuner.samplers.pool import Pool

NUMBER = "number"  # user attribute of a trial: its number in the run, which a replay keeps


class AbstractMethod(BaseSampler):
    """Proposes the rows ``first``, then whichever unseen row ``choose`` returns. Final subclasses only.

    A choice depends on the pool and on ``np.random.default_rng((seed, number))``, on nothing else.
    """

    def __init__(self, feasible: FeasibleSet, pool: Pool, seed: int, first: tuple[int, ...]) -> None:
        self.feasible = feasible
        self.pool = pool
        self.seed = seed
        self.first = first

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
        waiting = next((row for row in self.first if self.pool.unseen[row]), None)
        if waiting is not None:
            return waiting
        return self.choose(np.random.default_rng((self.seed, trial.user_attrs[NUMBER])))
