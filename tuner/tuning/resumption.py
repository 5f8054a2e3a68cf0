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
    """Proposes the rows of earlier sessions first, then the rows of the wrapped sampler."""

    def __init__(self, method: AbstractSampler, rows: tuple[int, ...]) -> None:
        self._method = method
        self._rows = rows  # by trial number

    def ask(self, number: int) -> int | None:
        """Returns the stored row, which the wrapped sampler replays; beyond the last, its next proposal."""
        if number >= len(self._rows):
            return self._method.ask(number)
        self._method.replay(number, self._rows[number])
        return self._rows[number]

    def tell(self, row: int, value: float | None) -> None:
        self._method.tell(row, value)

    def replay(self, number: int, row: int) -> None:
        self._method.replay(number, row)


class ReplayingBench(AbstractBench):
    """Returns the records of earlier sessions first, then runs candidates; waiting is interruptible."""

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
        """Starts the candidate in the wrapped bench, unless its record is stored."""
        record = self._records[number] if number < len(self._records) else None
        self._started.append(record)
        if record is None:
            self._bench.start(number, candidate, effort)

    def finish(self) -> BoundRecord:
        """Returns the stored record, else waits for the wrapped bench. Raises KeyboardInterrupt."""
        record = self._started.popleft()
        if record is not None:
            return record
        with self._interruption.waiting():
            return self._bench.finish()

    def remeasure(self, top_trials: tuple[BoundRecord, ...], effort: Effort) -> FinalTimes:
        with self._interruption.waiting():
            return self._bench.remeasure(top_trials, effort)

    def close(self) -> None:
        self._bench.close()
