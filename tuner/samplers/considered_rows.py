"""The configurations that are scored for one proposal: all of the feasible set, or a sample of a large set.

A row is the index of a configuration in the feasible set.
"""

from dataclasses import dataclass

import numpy as np

from tuner.samplers.proposals import Pool
from tuner.samplers.row_table import Rows, RowTable

SAMPLE_ROWS = 1 << 14  # drawn anew for every proposal: a hundred proposals score a million rows


@dataclass(frozen=True, eq=False)
class Scope:
    """The configurations among which one proposal is chosen: their indices in the feasible set, and codes."""

    rows: Rows  # in ascending order
    table: RowTable  # of these rows
    is_whole: bool  # all rows: always the same object, so models may cache results for it


def whole(table: RowTable) -> Scope:
    """Returns all configurations of the feasible set as the scope that a proposal is chosen from.

    ``table`` has a row for each of them, in the order of the feasible set.
    """
    return Scope(np.arange(len(table.codes)), table, is_whole=True)


def sampled(table: RowTable, pool: Pool, rng: np.random.Generator, near: list[int]) -> Scope:
    """Returns a scope of random configurations and of those with the indices ``near``.

    If all of these were proposed before, it holds configurations that were not proposed instead; so at least
    one was not, while the pool has any left.
    """
    drawn = rng.integers(len(table.codes), size=SAMPLE_ROWS)
    rows = np.unique(np.concatenate([drawn, np.array(near, np.int64)]))
    if not pool.unseen[rows].any():
        rows = np.flatnonzero(pool.unseen)[:SAMPLE_ROWS]
    return Scope(rows, table.part(rows), is_whole=False)
