"""Which rows were proposed, and what became of them."""

from collections import deque
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt


class Pool:
    """The rows of a feasible set as a search goes on: unseen, pending, told."""

    def __init__(self, rows: int, first: Iterable[int] = ()) -> None:
        self._waiting = deque(first)  # to propose before any other; of those seen meanwhile, none again
        self.unseen: npt.NDArray[np.bool_] = np.ones(rows, bool)
        self.order: list[int] = []  # proposed: pending and told, in the order of their numbers
        self.proposed: set[int] = set()  # the same
        self.outcomes: dict[int, float | None] = {}  # told: seconds, None for a failure

    @property
    def is_exhausted(self) -> bool:
        """Returns whether every row was proposed."""
        return len(self.proposed) == len(self.unseen)

    def require_unseen(self, row: int) -> None:
        """Raises ValueError for a row that there is not, or that was proposed before."""
        if not 0 <= row < len(self.unseen):
            raise ValueError(f"row: found {row}, allowed 0..{len(self.unseen) - 1}")
        if not self.unseen[row]:
            raise ValueError(f"row {row} was proposed before")

    def put_first(self, row: int) -> None:
        """Makes an unseen row the next to propose. Raises ValueError for one that is none."""
        self.require_unseen(row)
        self._waiting.appendleft(row)

    def next_waiting(self) -> int | None:
        """Takes out the next row to propose before any other; None when none waits."""
        while self._waiting:
            row = self._waiting.popleft()
            if self.unseen[row]:
                return row
        return None

    def propose(self, row: int) -> None:
        """Marks an unseen row as pending."""
        self.require_unseen(row)
        self.unseen[row] = False
        self.order.append(row)
        self.proposed.add(row)

    def tell(self, row: int, value: float | None) -> None:
        """Takes in an outcome. Raises ValueError for a row that is not pending."""
        if row not in self.proposed or row in self.outcomes:
            raise ValueError(f"row {row} is not pending")
        self.outcomes[row] = value

    def fastest(self) -> list[int]:
        """Returns the rows with a time, the fastest first; equal times go by row."""
        timed = sorted((value, row) for row, value in self.outcomes.items() if value is not None)
        return [row for _, row in timed]

    def draw(
        self, rng: np.random.Generator, count: int, start: int = 0, stop: int | None = None
    ) -> npt.NDArray[np.int64]:
        """Returns up to ``count`` unseen rows of ``start .. stop - 1``; none when none is left."""
        stop = len(self.unseen) if stop is None else stop
        drawn = rng.integers(start, stop, size=2 * count)
        found = drawn[self.unseen[drawn]][:count]
        if len(found):
            return found
        unseen = start + np.flatnonzero(self.unseen[start:stop])
        return rng.choice(unseen, min(count, len(unseen)), replace=False)
