"""Compiles programs in a child process, so that no crash or hang of a compiler ends the user's process.

The child process also compiles the host code to machine code once, as a check: loading the same code in this
process is then known to work. Each thread keeps its child process for the next program, because starting a
child process takes a second.
"""

import atexit
import os
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from tuner.core.errors import CandidateError, Failure, Stage, TunerError, UsageError
from tuner.programs.compiler import CompiledProgram
from tuner.programs.request import ProgramRequest
from tuner.programs.service import NAME, compile_and_check
from tuner.tuning.parts.child_call import MEMORY_BYTES
from tuner.workers.protocol import CALL, ServiceSpec
from tuner.workers.worker import Worker

# prefixes of a worker's message about how its child process ended
ENDS = ("killed by", "exited", "timed out", "exceeded")
TIMEOUT_S = 600.0  # of one program, without the start of the child process
Value = TypeVar("Value")


def compile_in_child(request: ProgramRequest) -> CompiledProgram:
    """Compiles a program in a child process, which the calling thread keeps for its next program.

    Raises UsageError for mistakes of the user, such as a payload that does not parse; CandidateError where
    the compilation fails, crashes or takes more than 600 s.
    """
    try:
        return call_in_kept_child(partial(compile_and_check, request))
    except CandidateError as error:
        raise _error_of(error.failure) from error


def call_in_kept_child(work: Callable[[], Value]) -> Value:
    """Calls ``work`` in the calling thread's child process, which is kept for the next call.

    ``work`` is a ``partial`` of a function that the child process can import. Raises CandidateError where it
    fails, crashes or takes more than 600 s.
    """
    worker = CHILDREN.of_this_thread()
    value: Value = worker.call(CALL, work, stage=Stage.COMPILE, timeout_s=TIMEOUT_S)
    return value


def called(work: Callable[[], Value]) -> Value:
    """Returns what ``work`` returns: the service of the child process."""
    return work()


def _error_of(failure: Failure) -> TunerError:
    """Returns a UsageError for the user's mistake, else a CandidateError.

    A crash is named as the compiler's.
    """
    if failure.stage is Stage.BIND:
        return UsageError(failure.reason)
    is_end = failure.reason.startswith(ENDS)
    return CandidateError(failure.stage, f"payload: compiler: {failure.reason}" if is_end else failure.reason)


class _Children(threading.local):
    """The child process of each thread that compiles programs; the child process ends with its thread."""

    def __init__(self) -> None:
        self._worker: Worker | None = None
        self._owner = 0  # process id: a process that was forked has no child of its parent's

    def of_this_thread(self) -> Worker:
        """Returns the child process of the calling thread, created on the first call."""
        if self._worker is None or self._owner != os.getpid():
            self._worker = Worker(ServiceSpec(NAME, called), MEMORY_BYTES)
            self._owner = os.getpid()
            atexit.register(_kill, self._worker, self._owner)
        return self._worker


def _kill(worker: Worker, owner: int) -> None:
    """Ends the child process of a worker, at the end of the process that started it."""
    if os.getpid() == owner:
        worker.kill()


# process-wide on purpose: the next program of a thread reuses the thread's child process
CHILDREN = _Children()
