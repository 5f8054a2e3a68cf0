"""Resumes an unfinished run as if it had never stopped: replays its stored trials in the search loop.

The loop asks, starts and finishes in the same order as before, but stored proposals are not proposed anew and
trials with an outcome are not run again. So the sampler receives exactly the same outcomes as before, and
proposes the same configurations.
"""

from collections import deque

from tuner.core.candidate import Candidate
from tuner.core.interfaces import AbstractRunner, AbstractSampler, BoundRecord, Effort, FinalTimes
from tuner.tuning.events import Interruption


class ReplayingSampler(AbstractSampler):
    """Proposes the stored rows of a run's earlier sessions, then those of the wrapped sampler."""

    def __init__(self, method: AbstractSampler, rows: tuple[int, ...]) -> None:
        self._method = method
        self._rows = rows  # by trial number

    def ask(self, number: int) -> int | None:
        if number >= len(self._rows):
            return self._method.ask(number)
        self._method.replay(number, self._rows[number])
        return self._rows[number]

    def tell(self, row: int, value: float | None) -> None:
        self._method.tell(row, value)

    def replay(self, number: int, row: int) -> None:
        self._method.replay(number, row)


class ReplayingRunner(AbstractRunner):
    """Returns stored records of earlier sessions, then runs candidates, interruptible while it waits."""

    def __init__(
        self,
        runner: AbstractRunner,
        records: tuple[BoundRecord | None, ...],  # by trial number; None: no outcome was stored
        interruption: Interruption,
    ) -> None:
        self._runner = runner
        self._records = records
        self._interruption = interruption
        self._started: deque[BoundRecord | None] = deque()

    def start(self, number: int, candidate: Candidate, effort: Effort) -> None:
        record = self._records[number] if number < len(self._records) else None
        self._started.append(record)
        if record is None:
            self._runner.start(number, candidate, effort)

    def finish(self) -> BoundRecord:
        record = self._started.popleft()
        if record is not None:
            return record
        with self._interruption.waiting():
            return self._runner.finish()

    def remeasure(self, top_trials: tuple[BoundRecord, ...], effort: Effort) -> FinalTimes:
        with self._interruption.waiting():
            return self._runner.remeasure(top_trials, effort)

    def close(self) -> None:
        self._runner.close()
