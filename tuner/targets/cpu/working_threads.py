"""Pins the threads of a library, which the library started itself, to processors."""

import contextlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

TASKS = Path("/proc/self/task")
WORK_S = 0.02  # of repeated calls; a working thread shows by then in the processor times


def pin_working_threads(repeat: Callable[[int], None], processors: tuple[int, ...]) -> None:
    """Pins this process's busiest threads, and the caller's thread, one to each of ``processors``.

    Calls ``repeat(1)`` for 0.02 s (WORK_S) to find the threads that run longest; the caller's thread gets the
    first processor. Threads beyond the number of processors are not pinned.
    """
    before = _processor_s()
    give_up = time.perf_counter() + WORK_S
    while time.perf_counter() < give_up:
        repeat(1)
    caller = threading.get_native_id()
    worked = {task: seconds - before.get(task, 0.0) for task, seconds in _processor_s().items()}
    others = sorted(worked.keys() - {caller}, key=lambda task: -worked[task])
    for task, processor in zip((caller, *others), processors, strict=False):
        with contextlib.suppress(ProcessLookupError):  # it has ended since
            os.sched_setaffinity(task, {processor})


def _processor_s() -> dict[int, float]:
    """Returns the seconds that each thread of this process ran, by thread id.

    Source: sched-stats.txt of the Linux kernel's documentation.
    """
    found = {}
    for task in TASKS.iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended since
            found[int(task.name)] = int((task / "schedstat").read_text().split()[0]) * 1e-9
    return found
