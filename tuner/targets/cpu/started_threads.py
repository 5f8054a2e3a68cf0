"""Threads that a kernel starts: it would compute on more processors than it may, or after it returned."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from tuner.core.errors import CandidateError, Stage

TASKS = Path("/proc/self/task")  # proc(5): a folder of each thread


@contextlib.contextmanager
def no_thread_started() -> Iterator[None]:
    """Raises CandidateError(RUN) where what is done within leaves threads behind."""
    before = set(TASKS.iterdir())
    yield
    started = set(TASKS.iterdir()) - before
    if started:
        raise CandidateError(Stage.RUN, f"started {len(started)} threads that go on after it returned")
