"""What was best for the tasks most like this one: where a search begins."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

from tuner.analysis.task_distance import TuningTask, nearest_first
from tuner.core.candidate import Candidate
from tuner.core.problem import Problem
from tuner.core.runs import WARM_START, FirstPoint

TASKS = 4  # that a search learns from, the nearest
POINTS = 8  # proposed in all


@dataclass(frozen=True)
class Known:
    """The fastest candidates of one task, by earlier runs or a recording."""

    task: TuningTask
    points: tuple[tuple[Candidate, str], ...]  # (candidate, who measured it), the fastest first

    def first_points(self, task: TuningTask) -> Iterator[FirstPoint]:
        """Yields the points as proposals for another task, with where they come from."""
        for candidate, who in self.points:
            source = f"{_words(self.task.problem, task.problem)} ({who})"
            yield FirstPoint(candidate, WARM_START, source)


def warm_points(task: TuningTask, known: tuple[Known, ...]) -> tuple[FirstPoint, ...]:
    """Returns what to propose: of each of the nearest tasks in turn its best, then its second, and so on.

    One task's best is partly luck, and what is good for several is likelier to be good for this one.
    """
    nearest = nearest_first(task, known, lambda each: each.task)[:TASKS]
    chosen: dict[Candidate, FirstPoint] = {}
    for turn in zip_longest(*(each.first_points(task) for each in nearest)):
        for point in turn:
            if point is not None and len(chosen) < POINTS:
                chosen.setdefault(point.candidate, point)
    return tuple(chosen.values())


def _words(problem: Problem, ours: Problem) -> str:
    """Names a problem by its shape and by what else is not as in ours."""
    pairs = (
        (problem.dtype, ours.dtype),
        (problem.layout, ours.layout),
        (problem.epilogue, ours.epilogue),
        (problem.result_dtype, ours.result_dtype),
    )
    other = dict.fromkeys(theirs for theirs, mine in pairs if theirs != mine)
    return " ".join((problem.shape, *other))
