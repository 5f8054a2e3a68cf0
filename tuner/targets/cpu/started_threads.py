"""Detects threads that a kernel starts: the kernel would use more processors than allowed, or run on."""

import contextlib
import os
from collections.abc import Iterator

from tuner.core.errors import CandidateError, Stage

TASKS = "/proc/self/task"  # proc(5): a folder of each thread


@contextlib.contextmanager
def no_thread_started() -> Iterator[None]:
    """Raises CandidateError(RUN) at the end of a ``with`` block if threads started in it still run."""
    before = _threads()
    yield
    started = _threads() - before
    if started:
        raise CandidateError(Stage.RUN, f"started {len(started)} threads that go on after it returned")


def _threads() -> set[str]:
    return set(os.listdir(TASKS))  # noqa: PTH208 - around each call of a kernel: pathlib takes 20 us more
