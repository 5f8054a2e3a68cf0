"""Detects what a kernel leaves behind in this process: threads that run on, and other rules of rounding."""

import contextlib
import ctypes
import os
from collections.abc import Iterator

from tuner.core.errors import CandidateError, Stage

TASKS = "/proc/self/task"  # proc(5): a folder of each thread
DEFAULT = ctypes.c_void_p(-1)  # FE_DFL_ENV of <fenv.h>
ONE, LEAST = 1.0, 2.0**-1074  # names, so that the products are not computed when the file is compiled
A_QUARTER, THREE_QUARTERS = 2.0**-54, 3 * 2.0**-54  # of the step from 1.0 to the next number


@contextlib.contextmanager
def no_thread_started() -> Iterator[None]:
    """Raises CandidateError(RUN) at the end of a ``with`` block if threads started in it still run.

    A kernel with threads of its own would use more processors than allowed, or run on.
    """
    before = _threads()
    yield
    started = _threads() - before
    if started:
        raise CandidateError(Stage.RUN, f"started {len(started)} threads that go on after it returned")


@contextlib.contextmanager
def same_float_mode() -> Iterator[None]:
    """Raises CandidateError(RUN) at the end of a ``with`` block if this thread rounds otherwise than before.

    Also if it then reads subnormal numbers as zeros, or writes them as zeros. Sets what is usual again.
    """
    before = _mode()
    yield
    if _mode() != before:
        ctypes.CDLL(None).fesetenv(DEFAULT)
        raise CandidateError(
            Stage.RUN, "changed how its thread rounds, or whether it has subnormal numbers, after it returned"
        )


def _threads() -> set[str]:
    return set(os.listdir(TASKS))  # noqa: PTH208 - around each call of a kernel: pathlib takes 20 us more


def _mode() -> tuple[bool, bool, bool]:
    return ONE + THREE_QUARTERS > ONE, ONE + A_QUARTER > ONE, LEAST * ONE > 0.0
