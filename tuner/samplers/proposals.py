"""The state of a search: the configurations that were proposed, and their outcomes.

A row is the index of a configuration in the feasible set.
"""

from collections import deque
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt


class Pool:
    """The state of each configuration of a feasible set during a search: unseen, pending or with an outcome.

    Configurations are identified by their index in the set (``row``).
    """

    def __init__(self, rows: int, first: Iterable[int] = ()) -> None:
        # to be proposed before other rows; rows that were proposed meanwhile are skipped
        self._waiting = deque(first)
        self.unseen: npt.NDArray[np.bool_] = np.ones(rows, bool)
        self.order: list[int] = []  # proposed rows, in the order of trial numbers
        self.proposed: set[int] = set()  # the same rows
        self.outcomes: dict[int, float | None] = {}  # by row: seconds, None for a failure

    @property
    def is_exhausted(self) -> bool:
        """Returns whether every configuration was proposed."""
        return len(self.proposed) == len(self.unseen)

    def require_unseen(self, row: int) -> None:
        """Raises ValueError where ``row`` is no index of the feasible set or was proposed before."""
        if not 0 <= row < len(self.unseen):
            raise ValueError(f"row: found {row}, allowed 0..{len(self.unseen) - 1}")
        if not self.unseen[row]:
            raise ValueError(f"row {row} was proposed before")

    def put_first(self, row: int) -> None:
        """Makes a configuration that was not proposed the next one that ``next_waiting`` returns.

        ``row`` is its index. Raises ValueError where ``row`` is no index of the feasible set or was proposed
        before.
        """
        self.require_unseen(row)
        self._waiting.appendleft(row)

    def next_waiting(self) -> int | None:
        """Returns the index of the next configuration that has to be proposed before others; None for none.

        Removes it from the queue of such configurations; skips those that were proposed meanwhile.
        """
        while self._waiting:
            row = self._waiting.popleft()
            if self.unseen[row]:
                return row
        return None

    def propose(self, row: int) -> None:
        """Marks the configuration with index ``row`` as proposed (pending).

        Raises ValueError where ``row`` is no index of the feasible set or was proposed before.
        """
        self.require_unseen(row)
        self.unseen[row] = False
        self.order.append(row)
        self.proposed.add(row)

    def tell(self, row: int, value: float | None) -> None:
        """Stores the outcome of a pending configuration: ``value`` in seconds, None for a failure.

        ``row`` is its index. Raises ValueError for one that is not pending.
        """
        if row not in self.proposed or row in self.outcomes:
            raise ValueError(f"row {row} is not pending")
        self.outcomes[row] = value

    def fastest(self) -> list[int]:
        """Returns the indices of the configurations with a time, the fastest first.

        Equal times are ordered by index.
        """
        timed = sorted((value, row) for row, value in self.outcomes.items() if value is not None)
        return [row for _, row in timed]

    def draw(
        self, rng: np.random.Generator, count: int, start: int = 0, stop: int | None = None
    ) -> npt.NDArray[np.int64]:
        """Returns up to ``count`` random indices, from ``start`` to ``stop - 1``, of unseen configurations.

        At least one, unless none is left; an index may occur more than once. ``stop`` None: the end of the
        set.
        """
        stop = len(self.unseen) if stop is None else stop
        drawn = rng.integers(start, stop, size=2 * count)
        found = drawn[self.unseen[drawn]][:count]
        if len(found):
            return found
        unseen = start + np.flatnonzero(self.unseen[start:stop])
        return rng.choice(unseen, min(count, len(unseen)), replace=False)
