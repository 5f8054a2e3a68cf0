"""Which values of a run's knobs no trial has tried, though some feasible configuration has them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from tuner.core.candidate import Candidate, Value
from tuner.space.feasible_set import FeasibleSet


@dataclass(frozen=True)
class UntriedValues:
    """The values of one knob of a strategy that are in a feasible configuration and in no trial."""

    strategy: str
    knob: str
    values: tuple[Value, ...]  # in the order of the search-space file; at least one
    feasible: int  # number of values of the knob that are in a feasible configuration


def untried_values(feasible: FeasibleSet, tried: Iterable[Candidate]) -> tuple[UntriedValues, ...]:
    """Returns the knobs with untried values, in the order of the strategies and of their knobs."""
    return tuple(_untried(feasible, tuple(tried)))


def _untried(feasible: FeasibleSet, tried: tuple[Candidate, ...]) -> Iterator[UntriedValues]:
    seen: set[tuple[str, str, Value]] = set()  # strategy, knob, value
    for candidate in tried:
        for name, value in candidate.choices:
            seen.add((candidate.strategy, name, value))
    for space, index in zip(feasible.spaces, feasible.index, strict=True):
        for column, knob in enumerate(space.knobs):
            picks = np.unique(index[:, column]).tolist()
            values = [knob.choices[pick] for pick in picks]
            untried = tuple(value for value in values if (space.strategy, knob.name, value) not in seen)
            if untried:
                yield UntriedValues(space.strategy, knob.name, untried, len(values))
