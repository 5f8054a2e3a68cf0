"""A clock of the time in which this process could run, for time limits of child processes.

A pause of all processes (SIGSTOP, Ctrl-Z, a suspended virtual machine) is no failure of a candidate. A
waiting process reads the clock in short steps; a step that took far longer than asked was a pause of this
process, and usually of its children as well. Reasons: docs/decisions/0036-available-time.md.
"""

import time
from collections.abc import Callable
from typing import final

TICK_S = 0.1  # a waiting process reads the clock this often
LONGEST_STEP_S = 2 * TICK_S  # at most counted per step: a busy machine wakes a process late


@final
class AvailableTime:
    """A clock of the seconds since its creation in which this process could run; call it for a reading.

    Between two readings at most 0.2 s (LONGEST_STEP_S) are counted: a longer step was a pause of the process.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Takes a clock, in seconds, that goes on during a pause."""
        self._clock = clock
        self._looked_s = clock()
        self._counted_s = 0.0

    def __call__(self) -> float:
        """Returns the available seconds until now."""
        now_s = self._clock()
        self._counted_s += min(now_s - self._looked_s, LONGEST_STEP_S)
        self._looked_s = now_s
        return self._counted_s
