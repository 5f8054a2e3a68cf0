"""One search through a space whose times are known."""

import time
from collections import deque
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.search.replay_space import ReplaySpace
from tuner.search.samplers import make_sampler


@dataclass(frozen=True, eq=False)
class ReplayedSearch:
    """The result of one search, and its cost."""

    found_s: npt.NDArray[np.float64]  # best time by number of evaluations; inf before the first
    evaluations: int  # of different rows: fewer than steps where a search ended before
    asks: int
    ask_s: float  # all of them


def replay(
    space: ReplaySpace,
    sampler: str,
    seed: int,
    evaluations: int,
    first: tuple[int, ...] = (),
    pending: int = 1,
    prior: str = "",
) -> ReplayedSearch:
    """Searches with one of the tuner's samplers, from the rows ``first`` on. A failure is an evaluation too.

    ``prior``: ``RunSettings.prior``.
    ``pending`` trials wait for their outcome, which is reported in the order of the proposals.
    """
    method = make_sampler(sampler, space.feasible, seed, first, prior)
    best, found = np.inf, []
    waiting: deque[int] = deque()
    spent_s = 0.0
    for number in range(min(evaluations, space.feasible.rows)):
        start = time.perf_counter()
        row = method.ask(number)
        spent_s += time.perf_counter() - start
        if row is None:
            raise AssertionError(f"{sampler}: no row as trial {number} of {space.feasible.rows}")
        waiting.append(row)
        best = float(np.fmin(best, space.times_s[row]))  # nan is a failure
        found.append(best)
        if len(waiting) == pending:
            oldest = waiting.popleft()
            time_s = float(space.times_s[oldest])
            method.tell(oldest, None if np.isnan(time_s) else time_s)
    return ReplayedSearch(np.array(found), len(found), len(found), spent_s)
