"""Offsets of a grouped_matmul: random ones, and the group of each row."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Int64 = npt.NDArray[np.int64]
UNEVEN_GROUPS = 3  # from so many groups on, one is empty and one has a single row
LIGHTEST = 0.5  # weight of a group relative to the mean one, at least: routing is never even
NO_GROUP = -1


def draw_offsets(groups: int, rows: int, rng: np.random.Generator) -> Array:
    """Returns offsets (groups + 1,), i32, of groups that have all rows between them, in a random order.

    The sizes of groups depend on the two numbers alone, so that kernels are timed on the same work: of
    different sizes, from UNEVEN_GROUPS (3) groups on one of them with no row and one with a single row.
    """
    of_problem = np.random.default_rng((groups, rows))
    weights = of_problem.uniform(LIGHTEST, 2 - LIGHTEST, groups)
    single = 0
    if groups >= UNEVEN_GROUPS:
        weights[:2] = 0
        single = 1
    counts = of_problem.multinomial(rows - single, weights / weights.sum())
    counts[0] += single
    return offsets_of(rng.permutation(counts))


def few_rows(groups: int, rows: int, used: int, rng: np.random.Generator) -> Array:
    """Returns offsets (groups + 1,), i32, of at most three groups with rows, together at most ``used``.

    If there are several of these, the first has one row. The rows lie anywhere, also at the end: a part of a
    large problem.
    """
    count = min(rows, used)
    chosen = np.sort(rng.permutation(groups)[:3])
    counts = np.zeros(groups, np.int64)
    counts[chosen[0]] = 1
    counts[chosen[-1]] += count - 1
    if len(chosen) == 3:
        moved = int(rng.integers(count))
        counts[chosen[1]] += min(moved, counts[chosen[-1]])
        counts[chosen[-1]] -= min(moved, counts[chosen[-1]])
    return offsets_of(counts, int(rng.integers(rows - count + 1)))


def offsets_of(counts: Array, first: int = 0) -> Array:
    """Returns offsets (groups + 1,), i32, of groups of ``counts`` rows each, one after the other.

    ``first``: the row at which the first group begins.
    """
    return (first + np.concatenate(([0], np.cumsum(counts)))).astype(np.int32)


def groups_of_rows(offsets: Array, rows: Array) -> Int64:
    """Returns the group of each row number; NO_GROUP (-1) before the first and after the last offset."""
    groups = np.searchsorted(offsets, rows, side="right") - 1
    groups[(groups < 0) | (rows >= offsets[-1])] = NO_GROUP
    return groups
