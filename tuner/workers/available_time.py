"""A clock of the time in which this process could run, for time limits of processes that it waits for.

A pause of all processes (SIGSTOP, Ctrl-Z, a suspended virtual machine) is nobody's failure. A process that
waits looks at the clock in short steps; a step that took far longer than asked was a pause of the process
itself, and as a rule of the others as well. Why so: docs/decisions/0036-available-time.md.
"""

import time
from collections.abc import Callable
from typing import final

TICK_S = 0.1  # who waits looks at the clock this often
LONGEST_STEP_S = 2 * TICK_S  # of one step, what counts: a busy machine wakes a process late


@final
class AvailableTime:
    """Seconds since the clock was made; of a step between two looks LONGEST_STEP_S count at most."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Takes the clock that goes on in a pause."""
        self._clock = clock
        self._looked_s = clock()
        self._counted_s = 0.0

    def __call__(self) -> float:
        """Returns the seconds that were available until now."""
        now_s = self._clock()
        self._counted_s += min(now_s - self._looked_s, LONGEST_STEP_S)
        self._looked_s = now_s
        return self._counted_s
