"""The loop of a search: proposals in flight, and which outcomes each of them knows.

Which outcomes a proposal knows does not depend on which process was faster, nor on how often a budget only
seemed spent, so a resumed search proposes the same.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

Started = TypeVar("Started")
Outcome = TypeVar("Outcome")


@dataclass(frozen=True)
class SearchSteps(Generic[Started, Outcome]):
    """What a search does with one trial, in this order; ``is_over`` and ``start`` know what was reported."""

    is_over: Callable[[int], bool]  # (trials proposed so far) -> whether the limits are reached
    start: Callable[[int], Started | None]  # (trial number); None: nothing is left to propose
    finish: Callable[[Started], Outcome]
    tell: Callable[[Outcome], None]  # to what proposes


def search_trials(
    steps: SearchSteps[Started, Outcome], pending_limit: int, first: int = 0
) -> Iterator[Outcome]:
    """Runs a search to its end; yields the outcomes in the order of proposals.

    With ``pending_limit`` trials in flight, proposal n is made when the outcomes of all trials up to
    ``n - pending_limit`` have been reported and no later ones. ``first``: number of the first trial.
    """
    pending: deque[Started] = deque()
    untold: deque[Outcome] = deque()
    number = first
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
        untold.append(steps.finish(pending.popleft()))
        yield untold[-1]


def _tell(steps: SearchSteps[Started, Outcome], untold: deque[Outcome], count: int) -> None:
    for _ in range(count):
        steps.tell(untold.popleft())
