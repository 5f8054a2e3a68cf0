"""The configurations of a feasible set as small integers, and distances between them."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tuner.space.feasible_set import FeasibleSet

Codes = npt.NDArray[np.signedinteger]  # (rows, columns); -1: the row's strategy has no such knob
Rows = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]

MISSING = 0.5  # position of a missing knob among its values: in the middle
ALIGNED_LEVELS_MIN = 3  # values of a knob: of two values, the rank says everything


@dataclass(frozen=True)
class Column:
    """A column of a RowTable, with its number of values: the strategy, a knob, or the alignments of a knob.

    Only a strategy or knob with more than one value has a column. A column of alignments, which
    ``RowTable.with_alignments`` adds, has the ranks of the largest powers of two that divide a knob's values.
    """

    levels: int  # codes are 0 .. levels - 1
    is_ordinal: bool  # neighbouring codes are similar values
    is_strategy: bool
    alignments: tuple[int, ...] = ()  # by code; () where alignment adds nothing to the code

    @property
    def places(self) -> Floats:
        """Returns the position of each value in 0 .. 1, by rank; the last entry is for a missing knob."""
        return np.append(np.arange(self.levels) / (self.levels - 1), MISSING).astype(np.float32)

    def differences(self, code: int) -> Floats:
        """Returns the distance, 0 to 1, of each value of the column from the value with code ``code``.

        The last entry is the distance of a missing knob. ``code`` -1: the distances from a missing knob.
        """
        if self.is_ordinal:
            places = self.places
            ranks_apart: Floats = np.abs(places - places[code])
            return ranks_apart
        apart = np.ones(self.levels + 1, np.float32)
        apart[-1] = MISSING
        apart[code] = 0.0
        if code == -1:
            apart[:-1] = MISSING
        return apart

    def squares(self, code: int) -> Floats:
        """Returns the squared distance of each value of the column from the value with code ``code``.

        The last entry is for a missing knob. Numbers lie at their places in 0 .. 1. Texts are one-hot vectors
        scaled by 1/2, and a missing text is the zero vector: two different texts have a squared distance of
        1/2, a text and a missing knob 1/4. The sum over all columns is thus a squared Euclidean distance, for
        which kernels such as the Gaussian are positive definite.
        """
        apart = self.differences(code)
        return apart * apart if self.is_ordinal else 0.5 * apart


@dataclass(frozen=True, eq=False)
class RowTable:
    """Configurations as small integers (codes), one column for the strategy and for each knob.

    Models and distances use it. A code is the place of a value in its column; -1: the strategy has no such
    knob.
    """

    codes: Codes
    columns: tuple[Column, ...]

    @classmethod
    def of(cls, feasible: FeasibleSet) -> "RowTable":
        """Returns the table of all configurations of a feasible set, without columns of a single value."""
        matrix = feasible.matrix()
        kept = [place for place, levels in enumerate(matrix.levels) if levels > 1]
        columns = tuple(
            Column(levels, matrix.is_ordinal[place], place == 0, alignments(matrix.values[place]))
            for place, levels in enumerate(matrix.levels)
            if levels > 1
        )
        return cls(matrix.rows if len(kept) == len(matrix.levels) else matrix.rows[:, kept], columns)

    def part(self, rows: Rows) -> "RowTable":
        """Returns the table of the configurations with the indices ``rows``, in that order."""
        return RowTable(self.codes[rows], self.columns)

    def with_alignments(self) -> "RowTable":
        """Returns the table with one more column for each knob for which ``alignments`` returns ranks.

        The column holds the rank of the largest power of two that divides the knob's value; -1: no such knob.
        """
        given = [(place, column) for place, column in enumerate(self.columns) if column.alignments]
        if not given:
            return self
        added = [np.append(column.alignments, -1)[self.codes[:, place]] for place, column in given]
        codes = np.concatenate([self.codes.T, np.array(added, self.codes.dtype)]).T
        further = (Column(max(column.alignments) + 1, True, False) for _, column in given)
        return RowTable(codes, (*self.columns, *further))

    def differences(self, codes: Codes) -> Floats:
        """Returns the distance of each configuration from ``codes``: the sum of the distances in each column.

        ``codes`` has one code for each column, and need not be a configuration of the table.
        """
        far = np.zeros(len(self.codes), np.float32)
        for place, column in enumerate(self.columns):
            far += column.differences(int(codes[place])).take(self.codes[:, place], mode="wrap")
        return far

    def squares(self) -> npt.NDArray[np.float64]:
        """Returns the squared distances of all pairs of configurations by column: (columns, rows, rows)."""
        count = len(self.codes)
        squares = np.empty((len(self.columns), count, count))
        for place, column in enumerate(self.columns):
            distinct, which = np.unique(self.codes[:, place], return_inverse=True)
            table = np.stack([column.squares(int(code)).take(distinct, mode="wrap") for code in distinct])
            squares[place] = table[which[:, None], which]
        return squares


def alignments(values: tuple[int | str, ...]) -> tuple[int, ...]:
    """Returns for each value of a knob the rank of the largest power of two that divides the value.

    () where this adds nothing: for texts, for fewer than three values, and where that rank never falls from
    one value to the next. () also for negative numbers; 0 has the rank of odd numbers.

    Vectors, banks and cache lines depend on alignment. By rank alone 48 lies between 32 and 64; by alignment
    it differs from both. A model that weighs columns gets both, and fits which of them matters.
    """
    numbers = [value for value in values if isinstance(value, int) and value >= 0]
    if len(numbers) < len(values) or len(values) < ALIGNED_LEVELS_MIN:
        return ()
    _, ranks = np.unique([_zeros(number) for number in numbers], return_inverse=True)
    return () if (np.diff(ranks) >= 0).all() else tuple(ranks.tolist())


def _zeros(number: int) -> int:
    """Returns the number of trailing zeros in binary; 0 for 0, which means "off"."""
    return (number & -number).bit_length() - 1 if number else 0
