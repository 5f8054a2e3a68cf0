"""Tasks for the tests of methods and models."""

import numpy as np

from tuner.core.interfaces import AbstractSampler
from tuner.search.configurations import Pool
from tuner.search.method import SearchTask
from tuner.space.feasible_set import FeasibleSet
from tuner.space.search_space import Knob, SearchSpace


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def grid(knobs: str, levels: int = 8, name: str = "s") -> SearchSpace:
    return SearchSpace(name, tuple(Knob(knob, tuple(range(levels))) for knob in knobs))


def line(levels: int, name: str = "s") -> SearchSpace:
    return grid("a", levels, name)


def task(*spaces: SearchSpace, seed: int = 0) -> SearchTask:
    feasible = FeasibleSet.of(spaces)
    return SearchTask(feasible, Pool(feasible.rows), seed)


def ask(sampler: AbstractSampler, number: int) -> int:
    row = sampler.ask(number)
    assert row is not None
    return row


def tell(task: SearchTask, *outcomes: tuple[int, float | None]) -> None:
    for row, value in outcomes:
        task.pool.propose(row)
        task.pool.tell(row, value)
