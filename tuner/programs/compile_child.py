"""Compiles programs in a child process, so that no crash or hang of a compiler ends the user's process.

The child also makes machine code of the host part, once, as a check: loading the same text in this process
then does what has worked there. Each thread keeps its child for the next program, since starting one takes a
second.
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

ENDS = ("killed by", "exited", "timed out", "exceeded")  # begin what a worker says of a child's end
TIMEOUT_S = 600.0  # of one program, the start of the child not included


def compile_in_child(request: ProgramRequest) -> CompiledProgram:
    """Compiles a payload. Raises UsageError for one that does not parse, CandidateError, also for a crash."""
    worker = CHILDREN.of_this_thread()
    try:
        compiled: CompiledProgram = worker.call(CALL, request, stage=Stage.COMPILE, timeout_s=TIMEOUT_S)
    except CandidateError as error:
        raise _error_of(error.failure) from error
    return compiled


def _error_of(failure: Failure) -> TunerError:
    """Returns the user's mistake, or the candidate's; how a child ended is said of the compiler."""
    if failure.stage is Stage.BIND:
        return UsageError(failure.reason)
    is_end = failure.reason.startswith(ENDS)
    return CandidateError(failure.stage, f"payload: compiler: {failure.reason}" if is_end else failure.reason)


class _Children(threading.local):
    """The child of each thread that compiles programs; it ends with its thread."""

    def __init__(self) -> None:
        self._worker: Worker | None = None

    def of_this_thread(self) -> Worker:
        """Returns the thread's child."""
        if self._worker is None:
            self._worker = Worker(ServiceSpec(NAME, compile_and_check), MEMORY_BYTES)
            atexit.register(self._worker.kill)
        return self._worker


CHILDREN = _Children()  # processes are the system's, not this module's: a second program finds its thread's
