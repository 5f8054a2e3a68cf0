"""Compiles programs in a child process, so that no crash or hang of a compiler ends the user's process.

The child process also compiles the host code to machine code once, as a check: loading the same code in this
process is then known to work. Each thread keeps its child process for the next program, because starting a
child process takes a second.
"""

import atexit
import threading

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


def compile_in_child(request: ProgramRequest) -> CompiledProgram:
    """Compiles a program in a child process, which the calling thread keeps for its next program.

    Raises UsageError for mistakes of the user, such as a payload that does not parse; CandidateError where
    the compilation fails, crashes or takes more than 600 s.
    """
    worker = CHILDREN.of_this_thread()
    try:
        compiled: CompiledProgram = worker.call(CALL, request, stage=Stage.COMPILE, timeout_s=TIMEOUT_S)
    except CandidateError as error:
        raise _error_of(error.failure) from error
    return compiled


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

    def of_this_thread(self) -> Worker:
        """Returns the child process of the calling thread, created on the first call."""
        if self._worker is None:
            self._worker = Worker(ServiceSpec(NAME, compile_and_check), MEMORY_BYTES)
            atexit.register(self._worker.kill)
        return self._worker


# process-wide on purpose: the next program of a thread reuses the thread's child process
CHILDREN = _Children()
