"""Tasks for the tests of methods and models."""

from tuner.feasible import FeasibleSet
from tuner.samplers.pool import Pool
from tuner.samplers.task import Task
from tuner.space import Knob, SearchSpace


def line(levels: int, name: str = "s") -> SearchSpace:
    return SearchSpace(name, (Knob("a", tuple(range(levels))),))


def grid(knobs: str, levels: int = 8, name: str = "s") -> SearchSpace:
    return SearchSpace(name, tuple(Knob(knob, tuple(range(levels))) for knob in knobs))


def task(*spaces: SearchSpace, seed: int = 0) -> Task:
    feasible = FeasibleSet.of(spaces)
    return Task(feasible, Pool(feasible.rows), seed)


def tell(task: Task, *outcomes: tuple[int, float | None]) -> None:
    for row, value in outcomes:
        task.pool.propose(row)
        task.pool.tell(row, value)
