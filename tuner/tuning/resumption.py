"""Resumes an unfinished run as if it had never stopped: replays its stored trials in the search loop.

The loop asks, starts and finishes in the same order as before, but stored proposals are not proposed anew and
trials with an outcome are not run again. So the sampler receives exactly the same outcomes as before, and
proposes the same configurations.
"""

from collections import deque

from tuner.core.bench import AbstractBench, BoundRecord, FinalTimes
from tuner.core.candidate import Candidate
from tuner.core.sampler import AbstractSampler
from tuner.core.target import Effort
from tuner.tuning.interruption import Interruption


class ReplayingSampler(AbstractSampler):
    """A sampler that proposes the stored rows of a run's earlier sessions, then those of the wrapped sampler.

    A row is the index of a candidate in the feasible set.
    """

    def __init__(self, method: AbstractSampler, rows: tuple[int, ...]) -> None:
        self._method = method
        self._rows = rows  # by trial number

    def ask(self, number: int) -> int | None:
        """Returns the row of trial ``number``: as stored, else as the wrapped sampler proposes.

        The wrapped sampler records a stored row as its proposal. None: every row was proposed.
        """
        if number >= len(self._rows):
            return self._method.ask(number)
        self._method.replay(number, self._rows[number])
        return self._rows[number]

    def tell(self, row: int, value: float | None) -> None:
        """Passes a row's seconds per call, None for a failed or untimed trial, to the wrapped sampler."""
        self._method.tell(row, value)

    def replay(self, number: int, row: int) -> None:
        """Makes the wrapped sampler record ``row`` as its proposal for trial ``number``."""
        self._method.replay(number, row)


class ReplayingBench(AbstractBench):
    """A bench that returns the stored records of a run's earlier sessions, then runs candidates.

    While it waits for the wrapped bench, it can be interrupted.
    """

    def __init__(
        self,
        bench: AbstractBench,
        records: tuple[BoundRecord | None, ...],  # by trial number; None: no outcome was stored
        interruption: Interruption,
    ) -> None:
        self._bench = bench
        self._records = records
        self._interruption = interruption
        self._started: deque[BoundRecord | None] = deque()

    def start(self, number: int, candidate: Candidate, effort: Effort) -> None:
        """Starts trial ``number`` in the wrapped bench, unless an earlier session has stored its outcome."""
        record = self._records[number] if number < len(self._records) else None
        self._started.append(record)
        if record is None:
            self._bench.start(number, candidate, effort)

    def finish(self) -> BoundRecord:
        """Returns the record of the earliest started trial that is not finished.

        The record is the stored one; without one, waits for the wrapped bench. Raises KeyboardInterrupt where
        the user interrupts the wait.
        """
        record = self._started.popleft()
        if record is not None:
            return record
        with self._interruption.waiting():
            return self._bench.finish()

    def remeasure(self, top_trials: tuple[BoundRecord, ...], effort: Effort) -> FinalTimes:
        """Times the top trials again, interleaved, in the wrapped bench.

        Raises KeyboardInterrupt where the user interrupts the wait.
        """
        with self._interruption.waiting():
            return self._bench.remeasure(top_trials, effort)

    def close(self) -> None:
        """Closes the wrapped bench, which ends its processes."""
        self._bench.close()
