"""How much a node's own process loads its machine: processor time and wake-ups, children not included."""

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
    wakeups: int  # voluntary context switches: one for each wait


@final
class QueueMeter:
    """A meter of how much this process loads its machine, from one reading to the next.

    The load is processor time, as a share of one processor, and voluntary context switches per second. Child
    processes do not count.
    """

    def __init__(self) -> None:
        self._last = _read()

    def load(self) -> QueueLoad:
        """Returns this process's load since the previous call, or since the meter was constructed."""
        before, self._last = self._last, _read()
        passed_s = max(self._last.moment_s - before.moment_s, 1e-9)
        return QueueLoad(
            (self._last.cpu_s - before.cpu_s) / passed_s, (self._last.wakeups - before.wakeups) / passed_s
        )


def keep_off_timed_processors() -> None:
    """Restricts this thread to the processors on which no single-threaded kernel is timed.

    Threads that it starts later are restricted as well. Does nothing where there is only one processor.
    Threads that start child processes must exist before: child processes choose their processors themselves.
    """
    allowed = os.sched_getaffinity(0)
    left = allowed - set(processors(1))
    if left:
        os.sched_setaffinity(0, left)


def _read() -> _Reading:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return _Reading(time.monotonic(), used.ru_utime + used.ru_stime, used.ru_nvcsw)
