"""The loop of a search: proposals in flight, which outcomes each of them knows, and stored trials first.

Which outcomes a proposal knows does not depend on which process was faster, nor on how often a budget only
seemed spent, so a resumed search proposes the same.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from tuner.core.candidate import Candidate
from tuner.core.interfaces import AbstractRunner, BoundRecord, Effort, FinalTimes
from tuner.tuning.events import Interruption

Started = TypeVar("Started")
Outcome = TypeVar("Outcome")


@dataclass(frozen=True)
class SearchSteps(Generic[Started, Outcome]):
    """The functions that a search calls for each trial, in this order.

    ``is_over`` and ``start`` may depend on the outcomes that ``tell`` has reported.
    """

    is_over: Callable[[int], bool]  # (trials proposed so far) -> whether the limits are reached
    start: Callable[[int], Started | None]  # (trial number); None: nothing is left to propose
    finish: Callable[[Started], Outcome]
    tell: Callable[[Started, Outcome], None]  # to what proposes


def search_trials(
    steps: SearchSteps[Started, Outcome], pending_limit: int
) -> Iterator[tuple[Started, Outcome]]:
    """Runs a search to its end; yields the trials with their outcomes in the order of proposals.

    With ``pending_limit`` trials in flight, proposal n is made when the outcomes of all trials up to
    ``n - pending_limit`` have been reported and no later ones.
    """
    pending: deque[Started] = deque()
    untold: deque[tuple[Started, Outcome]] = deque()
    number = 0
    while True:
        while len(pending) < pending_limit:
            # a budget that seemed spent may not be: then there are outcomes that are too late for this number
            _tell(steps, untold, len(pending) + len(untold) - pending_limit + 1)
            started = None if steps.is_over(number) else steps.start(number)
            if started is None:
                break
            pending.append(started)
            number += 1
        if not pending:
            _tell(steps, untold, len(untold))
            return
        started = pending.popleft()
        untold.append((started, steps.finish(started)))
        yield untold[-1]


def _tell(steps: SearchSteps[Started, Outcome], untold: deque[tuple[Started, Outcome]], count: int) -> None:
    for _ in range(count):
        steps.tell(*untold.popleft())


# Resuming a run as if it had never stopped: its stored trials are replayed in the search loop, which asks,
# starts and finishes in the same order as before. Stored proposals are not proposed anew, and trials with an
# outcome are not run again, so the sampler receives the same outcomes and proposes the same configurations.


class ReplayingRunner(AbstractRunner):
    """Returns the stored records of earlier sessions first, then runs candidates by the wrapped runner.

    An interruption ends it while it waits for a candidate.
    """

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
