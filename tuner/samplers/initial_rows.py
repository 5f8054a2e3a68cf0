"""The rows proposed before a model is fitted: the median of each strategy, then rows far from earlier ones.

A random configuration of a large space is usually far from good, and two distant ones tell more than two near
ones. The farthest row of all would be a corner, where extreme values meet: the farthest of a few random rows
usually is not (best-candidate sampling, Mitchell 1991, https://doi.org/10.1145/122718.122736).
"""

import numpy as np

from tuner.samplers.task import SCORED_LIMIT, SearchTask

START_ROWS = 6
START_ROWS_OF_STRATEGY = 3  # one slow row must not exclude a strategy
DRAWN = 16  # rows of which the farthest is taken


def is_starting(task: SearchTask) -> bool:
    """Returns whether too few configurations were proposed for a model to be fitted.

    The limit is 6, or 3 for each strategy of the search space if that is more.
    """
    return len(task.pool.order) < max(START_ROWS, START_ROWS_OF_STRATEGY * len(task.feasible.index))


def start_row(task: SearchTask, rng: np.random.Generator) -> int:
    """Returns the index of a configuration to propose before a model is fitted.

    It belongs to the strategy with the fewest proposals among those with configurations left: first the one
    nearest to the median of each knob, then one far from all proposed ones.
    """
    ends = np.cumsum([len(index) for index in task.feasible.index]).tolist()
    starts = [0, *ends[:-1]]
    seen = [
        sum(start <= row < end for row in task.pool.order) for start, end in zip(starts, ends, strict=True)
    ]
    left = [place for place, count in enumerate(seen) if starts[place] + count < ends[place]]
    place = min(left, key=seen.__getitem__)
    if seen[place] == 0:
        return _middle(task, rng, starts[place], ends[place])
    return _far(task, rng, starts[place], ends[place])


def _middle(task: SearchTask, rng: np.random.Generator, start: int, end: int) -> int:
    """Returns the row nearest to the median of every knob."""
    rows = np.arange(start, end)
    if len(rows) > SCORED_LIMIT:
        rows = np.sort(rng.choice(rows, SCORED_LIMIT, replace=False))
    table = task.table.part(rows)
    far = table.differences(np.median(table.codes, axis=0).astype(table.codes.dtype))
    return int(rng.choice(rows[far <= far.min()]))


def _far(task: SearchTask, rng: np.random.Generator, start: int, end: int) -> int:
    """Returns the random row, of DRAWN, that is the farthest from every proposed row."""
    rows = task.pool.draw(rng, DRAWN, start, end)
    table = task.table.part(rows)
    far = np.min([table.differences(task.table.codes[row]) for row in task.pool.order], axis=0)
    return int(rows[np.argmax(far)])
