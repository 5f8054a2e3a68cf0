"""Pins the threads that a library started itself to processors of their own, as kernels' threads are."""

import contextlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

TASKS = Path("/proc/self/task")
WORK_S = 0.02  # after which a thread that works has shown it


def pin_working_threads(repeat: Callable[[int], None], processors: tuple[int, ...]) -> None:
    """Pins the caller's thread and those that work most during ``repeat``, one to each processor."""
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
    """Returns how long each thread of this process ran; sched-stats.txt of the kernel's documents."""
    found = {}
    for task in TASKS.iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended since
            found[int(task.name)] = int((task / "schedstat").read_text().split()[0]) * 1e-9
    return found
