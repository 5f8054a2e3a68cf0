"""Detects threads that a kernel starts: the kernel would use more processors than allowed, or run on."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from tuner.core.errors import CandidateError, Stage

TASKS = Path("/proc/self/task")  # proc(5): a folder of each thread


@contextlib.contextmanager
def no_thread_started() -> Iterator[None]:
    """Raises CandidateError(RUN) at the end of a ``with`` block if threads started in it still run."""
    before = set(TASKS.iterdir())
    yield
    started = set(TASKS.iterdir()) - before
    if started:
        raise CandidateError(Stage.RUN, f"started {len(started)} threads that go on after it returned")
