"""Warm start: the best candidates of the nearest tasks, proposed first."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

from tuner.analysis.task_distance import TuningTask, nearest_first
from tuner.core.candidate import Candidate
from tuner.core.problem import Problem
from tuner.core.runs import WARM_START, FirstPoint

TASKS = 4  # nearest tasks that warm-start points are taken from
POINTS = 8  # warm-start points in all


@dataclass(frozen=True)
class Known:
    """The fastest candidates of one tuning task, from earlier runs or a recording, with their source."""

    task: TuningTask
    points: tuple[tuple[Candidate, str], ...]  # (candidate, who measured it), the fastest first

    def first_points(self, task: TuningTask) -> Iterator[FirstPoint]:
        """Yields these candidates as warm-start points for another task, ``task``, the fastest first.

        The source of each point names the known problem and who measured the candidate.
        """
        for candidate, who in self.points:
            source = f"{_text(self.task.problem, task.problem)} ({who})"
            yield FirstPoint(candidate, WARM_START, source)


def warm_points(task: TuningTask, known: tuple[Known, ...]) -> tuple[FirstPoint, ...]:
    """Returns up to POINTS (8) warm-start points: the best candidate of each of the nearest tasks first.

    Then come the second candidate of each task, the third of each, and so on. At most TASKS (4) tasks are
    used: one task's best is partly luck; a candidate that is good for several is likelier to be good here.
    """
    nearest = nearest_first(task, known, lambda each: each.task)[:TASKS]
    chosen: dict[Candidate, FirstPoint] = {}
    for turn in zip_longest(*(each.first_points(task) for each in nearest)):
        for point in turn:
            if point is not None and len(chosen) < POINTS:
                chosen.setdefault(point.candidate, point)
    return tuple(chosen.values())


def _text(problem: Problem, ours: Problem) -> str:
    """Returns a problem's shape, with its types, layout and the like where these differ from ``ours``."""
    pairs = (
        (problem.dtype, ours.dtype),
        (problem.layout, ours.layout),
        (problem.epilogue, ours.epilogue),
        (problem.result_dtype, ours.result_dtype),
        (f"align={problem.align}", f"align={ours.align}"),
        (f"cache={problem.cache}", f"cache={ours.cache}"),
    )
    other = dict.fromkeys(theirs for theirs, mine in pairs if theirs != mine)
    return " ".join((problem.shape, *other))
