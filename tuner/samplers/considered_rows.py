"""The rows that a method looks at for one proposal: all of them, or a sample of a large set."""

from dataclasses import dataclass

import numpy as np

from tuner.samplers.proposals import Pool
from tuner.samplers.row_table import Rows, RowTable

SAMPLE_ROWS = 1 << 14  # drawn anew for every proposal: after a hundred, the best of a million were looked at


@dataclass(frozen=True, eq=False)
class Scope:
    """The rows that one proposal is chosen among, with their codes."""

    rows: Rows  # in ascending order
    table: RowTable  # of these rows
    is_whole: bool  # every row: always the same object, so models may keep what they know of it


def whole(table: RowTable) -> Scope:
    """Returns every row."""
    return Scope(np.arange(len(table.codes)), table, is_whole=True)


def sampled(table: RowTable, pool: Pool, rng: np.random.Generator, near: list[int]) -> Scope:
    """Returns rows drawn at random and the rows ``near``; at least one is unseen."""
    drawn = rng.integers(len(table.codes), size=SAMPLE_ROWS)
    rows = np.unique(np.concatenate([drawn, np.array(near, np.int64)]))
    if not pool.unseen[rows].any():
        rows = np.flatnonzero(pool.unseen)[:SAMPLE_ROWS]
    return Scope(rows, table.part(rows), is_whole=False)
