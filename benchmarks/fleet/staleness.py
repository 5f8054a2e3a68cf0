"""The cost of staleness: searches of a recorded space that propose before earlier outcomes are known."""

from collections.abc import Iterator
from statistics import fmean, median, stdev
from typing import Any

import numpy as np

from benchmarks.search.replay_run import ReplayedSearch, replay
from benchmarks.search.replay_space import ReplaySpace

PENDING = (1, 2, 3, 4, 6, 8, 10, 12, 16)
NEAR_OPTIMUM = 0.95


def staleness_rows(
    space: ReplaySpace, sampler: str, evaluations: int, seeds: int
) -> Iterator[dict[str, Any]]:
    """Yields a row for each limit of pending trials."""
    for pending in PENDING:
        done = [replay(space, sampler, seed, evaluations, pending=pending) for seed in range(seeds)]
        scores = [space.score(search.found_s) for search in done]
        needed = [trials_until(space, search) for search in done]
        yield {
            "pending": pending,
            "p": fmean(scores),
            "p_standard_error": stdev(scores) / len(scores) ** 0.5 if len(scores) > 1 else None,
            "median_trials": None if median(needed) == np.inf else median(needed),
            "arrived": sum(count < np.inf for count in needed),
        }


def trials_until(space: ReplaySpace, search: ReplayedSearch) -> float:
    """Returns after how many trials a search had a kernel of 95 % of the optimum's speed; inf: never."""
    is_near = search.found_s <= space.ordered_s[0] / NEAR_OPTIMUM
    return int(np.argmax(is_near)) + 1 if is_near.any() else np.inf
