"""Context managers that refuse what a kernel may not leave behind: running threads, another float mode."""

import contextlib
import ctypes
import os
import platform
from collections.abc import Iterator

from tuner.core.errors import CandidateError, Stage

TASKS = "/proc/self/task"  # proc(5): a folder of each thread; a link to each, and two others
LIBC = ctypes.CDLL(None)
DEFAULT = ctypes.c_void_p(-1)  # FE_DFL_ENV of <fenv.h>
HAS_CONTROL_WORDS = platform.machine() == "x86_64"
# fenv_t of glibc on x86-64: 28 bytes of fnstenv, which begin with the control word, then MXCSR
FENV_BYTES = 32
X87_BYTES = 2
MXCSR_AT = 28
MXCSR_FLAGS = 0x3F
FEGETENV = LIBC.fegetenv
ENVIRONMENT = ctypes.create_string_buffer(FENV_BYTES)
ENVIRONMENT_ADDRESS = ctypes.addressof(ENVIRONMENT)
# names, so that the products are not computed when the file is compiled
ONE = 1.0
LEAST = 2.0**-1074
# of the step from 1.0 to the next number
A_QUARTER = 2.0**-54
THREE_QUARTERS = 3 * 2.0**-54
FEGETENV.argtypes = (ctypes.c_void_p,)

# Threads and modes are read before and after each call of a kernel, some of which take microseconds: all that
# this needs is looked up once, and the folder of threads is not listed.


@contextlib.contextmanager
def no_thread_started() -> Iterator[None]:
    """Context manager: raises CandidateError(RUN) at its end if threads that started within it still run."""
    before = _threads()
    yield
    started = _threads() - before
    if started > 0:
        raise CandidateError(Stage.RUN, f"started {started} threads that go on after it returned")


@contextlib.contextmanager
def same_float_mode() -> Iterator[None]:
    """Context manager: raises CandidateError(RUN) at its end if the float mode has changed; resets it.

    The float mode: rounding direction, exceptions, and whether subnormal numbers count as zero.
    """
    before = _mode()
    yield
    if _mode() != before:
        LIBC.fesetenv(DEFAULT)
        raise CandidateError(
            Stage.RUN, "changed how its thread rounds, or whether it has subnormal numbers, after it returned"
        )


def _threads() -> int:
    return os.stat(TASKS).st_nlink  # noqa: PTH116 - around each call of a kernel: pathlib takes 20 us more


def _mode() -> tuple[object, ...]:
    """Returns this thread's float mode: the x87 control word and MXCSR.

    On other processors: what sums and products show of how the thread rounds.
    """
    if not HAS_CONTROL_WORDS:
        return ONE + THREE_QUARTERS > ONE, ONE + A_QUARTER > ONE, LEAST * ONE > 0.0
    FEGETENV(ENVIRONMENT_ADDRESS)
    words = ENVIRONMENT.raw
    # any arithmetic sets flags of MXCSR
    return words[:X87_BYTES], words[MXCSR_AT] & ~MXCSR_FLAGS, words[MXCSR_AT + 1 :]
