"""A search method as an Optuna sampler over the strategy and its knobs."""

import abc
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState
from threadpoolctl import ThreadpoolController

from tuner.core.candidate import Candidate
from tuner.samplers.parameters import Distributions, distributions_of_rows, parameters
from tuner.samplers.task import SearchTask


class AbstractMethod(BaseSampler):
    """A search method, as an Optuna sampler: a subclass says by ``choose`` which configuration comes next.

    Configurations that wait in the pool are proposed first. Final subclasses only. A choice depends on the
    pool and on ``np.random.default_rng((seed, number))`` alone. The pool belongs to one study from its first
    trial on: trial ``number`` of the study is proposal ``number`` of the pool.
    """

    def __init__(self, task: SearchTask) -> None:
        self.task = task
        self._threads = ThreadpoolController()

    @abc.abstractmethod
    def choose(self, rng: np.random.Generator) -> int:
        """Returns the index, in the feasible set, of a configuration that was not proposed yet.

        Called only while there is such a configuration; ``rng`` is the only source of randomness.
        """

    def propose(self, number: int) -> Distributions:
        """Chooses the configuration of trial ``number`` and marks it as proposed in the pool.

        Returns the Optuna distributions of the trial's parameters, by name.
        """
        self.task.pool.propose(self._row(number))
        return self._parameters_of(number)

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> Distributions:
        """Returns the Optuna distributions of a trial's parameters: strategy, and knobs of the strategy."""
        return self._parameters_of(trial.number)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: Distributions
    ) -> dict[str, Any]:
        """Returns the strategy and the knob values that were chosen for a trial, by parameter name."""
        return dict(parameters(self._candidate(trial.number)))

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Raises ValueError, always: the trial's strategy has no parameter ``param_name``."""
        raise ValueError(f"trial {trial.number}: its strategy has no knob {param_name!r}")

    def after_trial(
        self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """Stores the outcome of a trial in the pool: its seconds, or a failure where ``values`` is empty."""
        self.task.pool.tell(self.task.pool.order[trial.number], values[0] if values else None)

    def _parameters_of(self, number: int) -> Distributions:
        return {name: self.distributions[name] for name in parameters(self._candidate(number))}

    @cached_property
    def distributions(self) -> Distributions:
        """Returns the Optuna distributions of all parameters by name, over all strategies."""
        return distributions_of_rows(self.task.feasible)

    def _candidate(self, number: int) -> Candidate:
        return self.task.feasible.candidate(self.task.pool.order[number])

    def _row(self, number: int) -> int:
        waiting = self.task.pool.next_waiting()
        if waiting is not None:
            return waiting
        # one thread: sums of floats keep their order, and the measured kernel keeps its cores
        with self._threads.limit(limits=1, user_api="blas"):
            return self.choose(np.random.default_rng((self.task.seed, number)))
