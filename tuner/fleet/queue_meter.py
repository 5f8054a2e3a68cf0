"""How much a node's own process disturbs what is measured beside it: processor, wake-ups, where it runs."""

import os
import resource
import time
from dataclasses import dataclass
from typing import final

from tuner.fleet.tables import QueueLoad
from tuner.runtime.cpu.describe_host import processors


@dataclass(frozen=True)
class _Reading:
    moment_s: float
    cpu_s: float
    wakeups: int  # a thread that waits of its own accord is woken once


@final
class QueueMeter:
    """Tells the load since it was last asked; children of the process do not count."""

    def __init__(self) -> None:
        self._last = _read()

    def load(self) -> QueueLoad:
        """Returns the load since then."""
        before, self._last = self._last, _read()
        passed_s = max(self._last.moment_s - before.moment_s, 1e-9)
        return QueueLoad(
            (self._last.cpu_s - before.cpu_s) / passed_s, (self._last.wakeups - before.wakeups) / passed_s
        )


def keep_off_timed_processors() -> None:
    """Moves this thread, and those that it starts from now on, off the processor that one thread is timed on.

    Threads that start children are to be there before: children choose for themselves.
    """
    allowed = os.sched_getaffinity(0)
    left = allowed - set(processors(1))
    if left:
        os.sched_setaffinity(0, left)


def _read() -> _Reading:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return _Reading(time.monotonic(), used.ru_utime + used.ru_stime, used.ru_nvcsw)
