"""Configurations during a search: their state, their integer codes, and those scored for a proposal.

``Pool`` has the state of each (unseen, pending, with an outcome), ``RowTable`` their codes and distances, and
a ``Scope`` the configurations among which a proposal is chosen: all, or a sample.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tuner.space.feasible_set import FeasibleSet

Codes = npt.NDArray[np.signedinteger]  # (rows, columns); -1: the row's strategy has no such knob
Rows = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
MISSING = 0.5  # position of a missing knob among its values: in the middle
ALIGNED_LEVELS_MIN = 3  # values of a knob: of two values, the rank says everything
SAMPLE_ROWS = 1 << 14  # drawn anew for every proposal: a hundred proposals score a million rows


class Pool:
    """The state of each configuration (``row``) during a search: unseen, pending or with an outcome."""

    def __init__(self, rows: int, first: Iterable[int] = ()) -> None:
        # to be proposed before other rows; rows that were proposed meanwhile are skipped
        self._waiting = deque(first)
        self.unseen: npt.NDArray[np.bool_] = np.ones(rows, bool)
        self.order: list[int] = []  # proposed rows, in the order of trial numbers
        self.proposed: set[int] = set()  # the same rows
        self.outcomes: dict[int, float | None] = {}  # by row: seconds, None for a failure

    @property
    def is_exhausted(self) -> bool:
        return len(self.proposed) == len(self.unseen)

    def require_unseen(self, row: int) -> None:
        """Raises ValueError where ``row`` is not an index of the feasible set or was proposed before."""
        if not isinstance(row, int | np.integer):  # of a sampler of another distribution
            raise ValueError(f"row: found {row!r}, allowed an integer")
        if not 0 <= row < len(self.unseen):
            raise ValueError(f"row: found {row}, allowed 0..{len(self.unseen) - 1}")
        if not self.unseen[row]:
            raise ValueError(f"row {row} was proposed before")

    def put_first(self, row: int) -> None:
        self.require_unseen(row)
        self._waiting.appendleft(row)

    def next_waiting(self) -> int | None:
        while self._waiting:
            row = self._waiting.popleft()
            if self.unseen[row]:
                return row
        return None

    def propose(self, row: int) -> None:
        """Marks ``row`` as proposed (pending). Raises ValueError if it is unknown or was proposed before."""
        self.require_unseen(row)
        self.unseen[row] = False
        self.order.append(row)
        self.proposed.add(row)

    def tell(self, row: int, value: float | None) -> None:
        """Stores the outcome of a pending row: seconds per call, or None for a failure.

        Raises ValueError if the row is not pending.
        """
        if row not in self.proposed or row in self.outcomes:
            raise ValueError(f"row {row} is not pending")
        self.outcomes[row] = value

    def fastest(self) -> list[int]:
        """Returns the rows with a time, the fastest first; equal times are ordered by index."""
        timed = sorted((value, row) for row, value in self.outcomes.items() if value is not None)
        return [row for _, row in timed]

    def draw(
        self, rng: np.random.Generator, count: int, start: int = 0, stop: int | None = None
    ) -> npt.NDArray[np.int64]:
        """Returns up to ``count`` random rows from ``start`` to ``stop - 1`` that are not proposed yet.

        At least one, unless none is left; a row may occur twice. ``stop`` None: the end of the set.
        """
        stop = len(self.unseen) if stop is None else stop
        drawn = rng.integers(start, stop, size=2 * count)
        kept = drawn[self.unseen[drawn]][:count]
        if len(kept):
            return kept
        unseen = start + np.flatnonzero(self.unseen[start:stop])
        return rng.choice(unseen, min(count, len(unseen)), replace=False)


@dataclass(frozen=True)
class Column:
    """A column of a RowTable with more than one value: a strategy, a knob, or alignments of its values.

    Arrays by code have one more entry, the last, for a missing knob, whose code is -1: ``take(mode="wrap")``
    finds it.
    """

    levels: int  # codes are 0 .. levels - 1
    is_ordinal: bool  # neighbouring codes are similar values
    is_strategy: bool
    alignments: tuple[int, ...] = ()  # by code; () where alignment adds nothing to the code

    @property
    def positions(self) -> Floats:
        """Returns the position of each code between 0 and 1, by rank.

        The last entry is that of a missing knob.
        """
        return np.append(np.arange(self.levels) / (self.levels - 1), MISSING).astype(np.float32)

    def differences(self, code: int) -> Floats:
        """Returns the distance, 0 to 1, of each code from ``code``.

        The last entry is that of a missing knob.
        """
        if self.is_ordinal:
            positions = self.positions
            ranks_apart: Floats = np.abs(positions - positions[code])
            return ranks_apart
        apart = np.ones(self.levels + 1, np.float32)
        apart[-1] = MISSING
        apart[code] = 0.0
        if code == -1:
            apart[:-1] = MISSING
        return apart

    def squares(self, code: int) -> Floats:
        """Returns the squared distance of each code from ``code``; the last entry is that of a missing knob.

        Texts are one-hot vectors scaled by 1/2, so that the sum over columns is a squared Euclidean distance,
        for which Gaussian kernels are positive definite.
        """
        apart = self.differences(code)
        if self.is_ordinal:
            return apart * apart
        return 0.5 * apart


@dataclass(frozen=True, eq=False)
class RowTable:
    """Configurations as integer codes: a column for the strategy and for each knob; -1: without the knob."""

    codes: Codes
    columns: tuple[Column, ...]

    @classmethod
    def of(cls, feasible: FeasibleSet) -> "RowTable":
        matrix = feasible.matrix()
        kept = [index for index, levels in enumerate(matrix.levels) if levels > 1]
        columns = tuple(
            Column(
                matrix.levels[number],
                matrix.is_ordinal[number],
                number == 0,
                alignments(matrix.values[number]),
            )
            for number in kept
        )
        return cls(matrix.rows if len(kept) == len(matrix.levels) else matrix.rows[:, kept], columns)

    def part(self, rows: Rows) -> "RowTable":
        return RowTable(self.codes[rows], self.columns)

    def with_alignments(self) -> "RowTable":  # one more column for each knob with alignments
        aligned = [(index, column) for index, column in enumerate(self.columns) if column.alignments]
        if not aligned:
            return self
        added = [np.append(column.alignments, -1)[self.codes[:, number]] for number, column in aligned]
        codes = np.concatenate([self.codes.T, np.array(added, self.codes.dtype)]).T
        further = (Column(max(column.alignments) + 1, True, False) for _, column in aligned)
        return RowTable(codes, (*self.columns, *further))

    def differences(self, codes: Codes) -> Floats:
        """Returns the distance of each configuration of the table from the one with ``codes``, (rows,).

        ``codes``: a code per column, the strategy and the knobs; the distances of the columns are added up.
        """
        far = np.zeros(len(self.codes), np.float32)
        for index, column in enumerate(self.columns):
            far += column.differences(int(codes[index])).take(self.codes[:, index], mode="wrap")
        return far

    def squares(self) -> npt.NDArray[np.float64]:  # (columns, rows, rows): squared distances
        count = len(self.codes)
        squares = np.empty((len(self.columns), count, count))
        for index, column in enumerate(self.columns):
            distinct, which = np.unique(self.codes[:, index], return_inverse=True)
            table = np.stack([column.squares(int(code)).take(distinct, mode="wrap") for code in distinct])
            squares[index] = table[which[:, None], which]
        return squares


def alignments(values: tuple[int | str, ...]) -> tuple[int, ...]:
    """Returns for each value of a knob the rank of the largest power of two that divides the value.

    () for texts, negative numbers, fewer than three values, and where the rank never falls with growing
    values. By size 48 lies between 32 and 64, by alignment 48 differs from both: a model gets both columns.
    """
    numbers = [value for value in values if isinstance(value, int) and value >= 0]
    if len(numbers) < len(values) or len(values) < ALIGNED_LEVELS_MIN:
        return ()
    # trailing zeros in binary; 0 of 0, which means "off"
    zeros = [(number & -number).bit_length() - 1 if number else 0 for number in numbers]
    _, ranks = np.unique(zeros, return_inverse=True)
    if (np.diff(ranks) >= 0).all():
        return ()
    return tuple(ranks.tolist())


@dataclass(frozen=True, eq=False)
class Scope:
    """The configurations among which one proposal is chosen: their indices in the feasible set, and codes."""

    rows: Rows  # in ascending order
    table: RowTable  # of these rows
    is_whole: bool  # all rows: always the same object, so models may cache results for it


def whole(table: RowTable) -> Scope:
    """Returns the scope of all configurations of the feasible set, in its order."""
    return Scope(np.arange(len(table.codes)), table, is_whole=True)


def sampled(table: RowTable, pool: Pool, rng: np.random.Generator, near: list[int]) -> Scope:
    """Returns the scope of random configurations and of those with the indices ``near``.

    If all of these are proposed already, the scope of the first SAMPLE_ROWS configurations that are not.
    """
    drawn = rng.integers(len(table.codes), size=SAMPLE_ROWS)
    rows = np.unique(np.concatenate([drawn, np.array(near, np.int64)]))
    if not pool.unseen[rows].any():
        rows = np.flatnonzero(pool.unseen)[:SAMPLE_ROWS]
    return Scope(rows, table.part(rows), is_whole=False)
