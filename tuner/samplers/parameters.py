"""The strategy and its knobs as Optuna parameters: a trial has the parameters of its candidate only."""

from collections.abc import Iterable

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution

from tuner.core.candidate import Candidate, Value
from tuner.space.feasible_set import FeasibleSet

STRATEGY = "strategy"  # a parameter in addition to the knobs; a trial has the knobs of its strategy

Distributions = dict[str, BaseDistribution]  # by parameter, over all strategies


def parameters(candidate: Candidate) -> dict[str, Value]:
    """Returns a candidate as Optuna parameters by name: "strategy", then its knobs."""
    return {STRATEGY: candidate.strategy, **dict(candidate.choices)}


def distributions_of_rows(feasible: FeasibleSet) -> Distributions:
    """Returns the Optuna distribution of each parameter, over the configurations of a feasible set.

    An integer knob gets the range of the values that occur, other parameters get a list of them.
    """
    found: list[tuple[str, Value]] = []
    for space, index in zip(feasible.spaces, feasible.index, strict=True):
        found.append((STRATEGY, space.strategy))
        for place, knob in enumerate(space.knobs):
            picks = np.flatnonzero(np.bincount(index[:, place]))
            found.extend((knob.name, knob.choices[pick]) for pick in picks)
    return _distributions(found)


def distributions_of_candidates(candidates: Iterable[Candidate]) -> Distributions:
    """Returns the Optuna distribution of each parameter, from candidates instead of a search space.

    An integer knob gets the range of the values that occur, other parameters get a list of them.
    """
    return _distributions(pair for candidate in candidates for pair in parameters(candidate).items())


def _distributions(found: Iterable[tuple[str, Value]]) -> Distributions:
    values: dict[str, set[Value]] = {}
    for name, value in found:
        values.setdefault(name, set()).add(value)
    return {name: _distribution(met) for name, met in values.items()}


def _distribution(values: set[Value]) -> BaseDistribution:
    numbers = [value for value in values if isinstance(value, int)]
    if len(numbers) == len(values):
        return IntDistribution(min(numbers), max(numbers))
    return CategoricalDistribution(sorted(values, key=str))
