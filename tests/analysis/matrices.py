"""Small matrices of times for the tests of this folder."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from hypothesis import strategies as st

from tuner.analysis.time_matrix import TimeMatrix
from tuner.core.candidate import Candidate
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem

Times = Sequence[Sequence[float | None]]
Kind = TypeVar("Kind")


def instance(kind: type[Kind], found: object) -> Kind:
    """Returns a value, which must be of the kind."""
    assert isinstance(found, kind), found
    return found


def matrix_of(
    times_s: Times,
    problems: Sequence[Problem] = (),
    costs: Sequence[Sequence[float]] | None = None,
    applies: Sequence[Sequence[bool]] | None = None,
) -> TimeMatrix:
    """Returns a matrix; a time of None is a column that does not apply, unless ``applies`` says otherwise."""
    rows = tuple(tuple(row) for row in times_s)
    if applies is None:
        applies = [[time is not None for time in row] for row in rows]
    return TimeMatrix(
        problems=tuple(problems) or tuple(Matmul(2 ** (row + 1), 64, 64) for row in range(len(rows))),
        counts=(1,) * len(rows),
        columns=tuple(Candidate.of("s", {"tile_m": tile}) for tile in range(1, len(rows[0]) + 1)),
        times_s=rows,
        applies=tuple(map(tuple, applies)),
        costs=tuple((1.0,) * len(row) for row in rows) if costs is None else tuple(map(tuple, costs)),
    )


@st.composite
def matrices(draw: st.DrawFn, columns: int = 7) -> TimeMatrix:
    """Draws matrices in which some columns apply to some problems only, and the first one to all."""
    seed, rows = draw(st.integers(0, 2**32 - 1)), draw(st.integers(2, 6))
    count = draw(st.integers(3, columns))
    rng = np.random.default_rng(seed)
    times = np.exp(rng.normal(0.0, 0.5, (rows, count))).astype(object)
    gaps = rng.random((rows, count)) < 0.2
    gaps[:, 0] = gaps[0, :] = False
    times[gaps] = None
    return matrix_of(times.tolist())
