"""Optuna's samplers on a feasible set: a suggestion is replaced by the nearest row not proposed yet."""

import importlib.util
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.samplers import BaseGASampler, BaseSampler
from optuna.trial import FrozenTrial, TrialState

from tuner.core.errors import UsageError
from tuner.search.configurations import Codes
from tuner.search.method import AbstractMethod, SearchTask, quiet_study

CONSTRAINTS = "constraints"  # system attribute of a trial that Optuna's samplers read
# system attributes that the genetic samplers read
GENERATIONS = ("NSGAIISampler:generation", "NSGAIIISampler:generation")
POPULATION = 20
SOURCES_MIN = 10  # trials from which cmaes can estimate its start

History = list[FrozenTrial]


class OptunaRows(AbstractMethod):
    """Asks one of Optuna's samplers for a suggestion; chooses the nearest configuration not proposed yet.

    Each proposal makes a new study of all outcomes, so it depends on history and seed alone. State that a
    sampler keeps in addition to the trials is lost: cmaes starts from the history (warm start, Nomura et al.
    2021, https://arxiv.org/abs/2012.06932), the genetic samplers treat all trials as one generation. Raises
    UsageError if a package that the sampler needs is missing.
    """

    def __init__(self, task: SearchTask, name: str) -> None:
        AbstractMethod.__init__(self, task)
        self._kind = KINDS[name]
        for package in self._kind.packages:
            if importlib.util.find_spec(package) is None:
                raise UsageError(
                    f"sampler optuna:{name}: the package {package} is missing", f"pip install {package}"
                )
        self._distributions: dict[str, BaseDistribution] = {}  # of a knob's codes, by its column
        for index, column in enumerate(task.table.columns):
            if column.is_ordinal or self._kind.takes_numbers_only:
                self._distributions[str(index)] = IntDistribution(0, column.levels - 1)
            else:
                self._distributions[str(index)] = CategoricalDistribution(tuple(range(column.levels)))

    def choose(self, rng: np.random.Generator) -> int:
        seed = int(rng.integers(1 << 31))
        if self._kind.is_sequence:
            seed = self.task.seed  # the same sequence at each proposal
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some of Optuna's samplers are experimental
            history = self.history()
            study = quiet_study(self._kind.make(seed, history))
            study.add_trials(history)
            if self._kind.is_sequence:  # points that earlier proposals had
                for _ in self.task.pool.order:
                    study.ask(self._distributions)
            params = study.ask(self._distributions).params
        suggested: Codes = np.array([params[name] for name in self._distributions], np.int64)
        scope = self.task.scope(rng)
        return self.task.best_unseen(scope, -scope.table.differences(suggested), rng)

    def history(self) -> History:
        """Returns the outcomes so far as Optuna trials, in the order of proposals.

        A failed trial gets the slowest time, and violates a constraint.
        """
        pool = self.task.pool
        slowest = max((value for value in pool.outcomes.values() if value is not None), default=1.0)
        ended = [(row, pool.outcomes[row]) for row in pool.order if row in pool.outcomes]
        return [self._trial(row, value, slowest) for row, value in ended]

    def _trial(self, row: int, value: float | None, slowest: float) -> FrozenTrial:
        table = self.task.table
        parameters = {}
        for index, code in enumerate(table.codes[row].tolist()):
            is_missing = code < 0  # the row's strategy lacks the knob: the middle of its values
            parameters[str(index)] = table.columns[index].levels // 2 if is_missing else code
        return optuna.trial.create_trial(
            state=TrialState.COMPLETE,
            value=slowest if value is None else value,
            params=parameters,
            distributions=self._distributions,
            system_attrs={CONSTRAINTS: [1.0 if value is None else -1.0], **dict.fromkeys(GENERATIONS, 0)},
        )


def _stored(trial: FrozenTrial) -> Any:
    return trial.system_attrs[CONSTRAINTS]


def _genetic(class_: type[BaseGASampler]) -> Callable[[int, History], BaseSampler]:
    def make(seed: int, _: History) -> BaseSampler:
        return class_(seed=seed, population_size=POPULATION, constraints_func=_stored)  # type: ignore[call-arg]

    return make


def _cmaes(seed: int, history: History) -> BaseSampler:
    if len(history) < SOURCES_MIN:
        return optuna.samplers.RandomSampler(seed=seed)
    return optuna.samplers.CmaEsSampler(
        seed=seed, n_startup_trials=0, source_trials=history, warn_independent_sampling=False
    )


@dataclass(frozen=True)
class OptunaKind:
    """How one of Optuna's samplers is made, and which packages it needs in addition to Optuna's own.

    ``takes_numbers_only``: texts are passed as integer codes, too. ``is_sequence``: proposal n is the
    sampler's n-th point, whatever the outcomes.
    """

    make: Callable[[int, History], BaseSampler]  # (seed, trials with an outcome)
    packages: tuple[str, ...] = ()  # required beyond Optuna's dependencies
    takes_numbers_only: bool = False
    is_sequence: bool = False  # of low discrepancy


KINDS = {
    "tpe": OptunaKind(lambda seed, _: optuna.samplers.TPESampler(seed=seed, constraints_func=_stored)),
    "gp": OptunaKind(
        lambda seed, _: optuna.samplers.GPSampler(seed=seed, deterministic_objective=False),
        ("scipy", "torch"),
    ),
    "cmaes": OptunaKind(_cmaes, ("cmaes",), takes_numbers_only=True),
    "nsgaii": OptunaKind(_genetic(optuna.samplers.NSGAIISampler)),
    "nsgaiii": OptunaKind(_genetic(optuna.samplers.NSGAIIISampler)),
    "qmc": OptunaKind(
        lambda seed, _: optuna.samplers.QMCSampler(seed=seed, scramble=True, warn_independent_sampling=False),
        ("scipy",),
        is_sequence=True,
    ),
    "random": OptunaKind(lambda seed, _: optuna.samplers.RandomSampler(seed=seed)),
}
