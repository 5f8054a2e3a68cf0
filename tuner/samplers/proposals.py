"""The state of a search: proposed rows and their outcomes."""

from collections import deque
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt


class Pool:
    """The rows of a feasible set during a search: unseen, pending (proposed), or with an outcome."""

    def __init__(self, rows: int, first: Iterable[int] = ()) -> None:
        # to be proposed before other rows; rows that were proposed meanwhile are skipped
        self._waiting = deque(first)
        self.unseen: npt.NDArray[np.bool_] = np.ones(rows, bool)
        self.order: list[int] = []  # proposed rows, in the order of trial numbers
        self.proposed: set[int] = set()  # the same rows
        self.outcomes: dict[int, float | None] = {}  # by row: seconds, None for a failure

    @property
    def is_exhausted(self) -> bool:
        """Returns whether every row was proposed."""
        return len(self.proposed) == len(self.unseen)

    def require_unseen(self, row: int) -> None:
        """Raises ValueError for a row outside of the feasible set, and for a row that was proposed before."""
        if not 0 <= row < len(self.unseen):
            raise ValueError(f"row: found {row}, allowed 0..{len(self.unseen) - 1}")
        if not self.unseen[row]:
            raise ValueError(f"row {row} was proposed before")

    def put_first(self, row: int) -> None:
        """Makes an unseen row the next one to propose. Raises ValueError as ``require_unseen`` does."""
        self.require_unseen(row)
        self._waiting.appendleft(row)

    def next_waiting(self) -> int | None:
        """Removes and returns the next row that is to be proposed first; None when there is none."""
        while self._waiting:
            row = self._waiting.popleft()
            if self.unseen[row]:
                return row
        return None

    def propose(self, row: int) -> None:
        """Marks an unseen row as pending. Raises ValueError as ``require_unseen`` does."""
        self.require_unseen(row)
        self.unseen[row] = False
        self.order.append(row)
        self.proposed.add(row)

    def tell(self, row: int, value: float | None) -> None:
        """Stores the outcome of a row. Raises ValueError for a row that is not pending."""
        if row not in self.proposed or row in self.outcomes:
            raise ValueError(f"row {row} is not pending")
        self.outcomes[row] = value

    def fastest(self) -> list[int]:
        """Returns the rows with a time, the fastest first; equal times are ordered by row."""
        timed = sorted((value, row) for row, value in self.outcomes.items() if value is not None)
        return [row for _, row in timed]

    def draw(
        self, rng: np.random.Generator, count: int, start: int = 0, stop: int | None = None
    ) -> npt.NDArray[np.int64]:
        """Returns up to ``count`` random unseen rows of ``start .. stop - 1``; none when none is left."""
        stop = len(self.unseen) if stop is None else stop
        drawn = rng.integers(start, stop, size=2 * count)
        found = drawn[self.unseen[drawn]][:count]
        if len(found):
            return found
        unseen = start + np.flatnonzero(self.unseen[start:stop])
        return rng.choice(unseen, min(count, len(unseen)), replace=False)
