"""A child process under limits, for one call or many: a crash, a timeout or too much memory is a Failure.

``call_in_child`` makes one call. A ``Worker`` serves many: ``submit`` begins a call, ``poll`` looks for its
reply and enforces the limits, ``ask`` and ``call`` wait. A child that had to be killed is replaced.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from tuner.core.errors import (
    EXCEEDED,
    TIMED_OUT,
    CandidateError,
    Failure,
    MachineError,
    Stage,
    TunerError,
    UsageError,
)
from tuner.runtime.workers.child_process import ChildProcess, sleep_until_news
from tuner.runtime.workers.processes import TICK_S, AvailableTime, time_limit_factor
from tuner.runtime.workers.protocol import (
    CALL,
    CallRequest,
    Event,
    GoAhead,
    Message,
    Ready,
    Reply,
    ServiceDefect,
    ServiceSpec,
)

if TYPE_CHECKING:
    from tuner.core.problem import Problem
    from tuner.runtime.workers.services import Environment


Value = TypeVar("Value")
MEMORY_BYTES = 8 << 30  # of a child, in addition to the arrays of its problem
# Of a child, in addition: for each byte of the call that it was sent, and of the constants that it maps.
# Texts are read into MLIR, printed, and read again with the code. Constants are packed, for the tuned and the
# untuned program, and may be computed from others before. They may be of any size.
MEMORY_PER_SENT_BYTE = 8
MEMORY_PER_DATA_BYTE = 8
START_TIMEOUT_S = 60.0  # importing the compiler takes 1 s on an idle machine; 10 s in an emulator
START_ATTEMPTS = 3  # of a child that is killed while starting, as where memory is short, or stopped
STOPPED_LIMIT_S = 0.5  # that another process's signal may stop a child before it is replaced
KILLED = "killed by SIGKILL"
MIB = 1 << 20
log = logging.getLogger(__name__)


def child_memory_bytes(problem: "Problem") -> int:
    """Returns a child's memory limit: MEMORY_BYTES plus twice the problem's arrays and reference."""
    from tuner.payload.reference import reference_bytes  # not at start-up

    return MEMORY_BYTES + 2 * reference_bytes(problem)


def call_in_child(
    name: str,  # of the task, for messages
    work: Callable[[], Value],  # a function that the child can import, or a ``partial`` of one
    timeout_s: float,
    memory_bytes: int = MEMORY_BYTES,
    environment: "Environment" = (),
    *,
    is_named: bool = True,  # messages begin with ``name``
    data_bytes: int = 0,  # of constants that the child maps
) -> Value:
    """Calls ``work`` in a new child process, under limits of time and memory, and returns its result.

    A failure of stage BIND raises UsageError; every other failure, such as a crash or a timeout, TunerError.
    Messages begin with ``name`` if ``is_named``.
    """
    worker = Worker(ServiceSpec(name, work, environment), memory_bytes)
    try:
        value: Value = worker.call(CALL, stage=Stage.RUN, timeout_s=timeout_s, data_bytes=data_bytes)
    except CandidateError as error:
        error_type = UsageError if error.stage is Stage.BIND else TunerError
        raise error_type(f"{name}: {error.reason}" if is_named else error.reason) from error
    finally:
        worker.kill()
    return value


@dataclass(frozen=True)
class _Call:
    request: CallRequest
    stage: Stage
    timeout_s: float
    data_bytes: int  # of constants that the call maps


class ChildTraceback(Exception):  # noqa: N818 - the cause of an error: a text to print after it
    """The traceback of an error in a child process, as text; printed with ``--debug``."""


class Worker:
    """Serves one call at a time in a long-lived child process; a child that had to be killed is replaced.

    The memory limit is on resident memory, polled every tick: RLIMIT_AS would count the address space that a
    JIT, an allocator per thread or a CUDA driver reserves and never touches. It is ``memory_bytes``, and
    MEMORY_PER_SENT_BYTE for each byte of the call, MEMORY_PER_DATA_BYTE for each byte that the call maps.
    Time limits, and the seconds of a Reply, are in ``AvailableTime``: a pause of this process does not count.
    The ``time_limit_factor`` of the environment multiplies all time limits.
    The child dies with the thread that started it (prctl(2), PR_SET_PDEATHSIG): use a Worker in one thread.
    """

    def __init__(
        self,
        spec: ServiceSpec,
        memory_bytes: int,
        clock: Callable[[], float] = time.monotonic,
        start_timeout_s: float = START_TIMEOUT_S,
    ) -> None:
        self._spec = spec
        self._time_limit_factor = time_limit_factor()
        self._start_timeout_s = start_timeout_s
        self._memory_bytes = memory_bytes
        self._clock = AvailableTime(clock)  # read by each ``poll`` that waits
        self._child: ChildProcess | None = None
        self._call: _Call | None = None
        self._sent_bytes = 0  # of the call
        self._is_ready = False
        self._was_ready = False  # True once any child has been ready
        self._attempts = 0  # at the call, by children that were killed or stopped from outside
        self._stopped_s: float | None = None  # when another process stopped the child, by the clock
        self._served = 0  # calls that this child has finished
        self._trace = ""  # of the error, other than CandidateError, with which the last call ended
        self._began_s = 0.0  # when start or call began, by the clock; shifted by pauses
        self._paused_s: float | None = None  # when the pause began, by the clock

    @property
    def is_busy(self) -> bool:
        """True while a call is in progress."""
        return self._call is not None

    @property
    def child(self) -> ChildProcess | None:
        """Returns the child process, for a caller that waits for its messages; None if no child runs."""
        return self._child

    def start(self) -> None:
        """Starts a child unless one runs; does not wait until it is ready.

        Raises TunerError if no process can be started.
        """
        if self._child is not None and self._child.has_ended:
            self.kill()
        if self._child is not None:
            return
        try:
            self._child = ChildProcess(self._spec)
        except OSError as error:
            raise TunerError(f"{self._spec.name} worker did not start: {error}") from error
        self._is_ready = False
        self._served = 0
        self._began_s = self._clock()

    def submit(self, method: str, *args: object, stage: Stage, timeout_s: float, data_bytes: int = 0) -> None:
        """Begins a call of the child's service; does not wait.

        ``stage``: of the Failure that a crash becomes. ``data_bytes``: of the constants that the call maps,
        for which it may have more memory. Raises RuntimeError if a call is in progress, TunerError if no
        process can be started.
        """
        if self._call is not None:
            raise RuntimeError(f"{self._spec.name} worker is busy")
        self.start()
        assert self._child is not None
        self._attempts = 0
        self._trace = ""
        self._begin(_Call(CallRequest(method, args), stage, timeout_s, data_bytes))

    def ask(self, method: str, *args: object, stage: Stage, timeout_s: float, data_bytes: int = 0) -> Reply:
        """Calls a method of the child's service and waits for the Reply, which may have a Failure.

        ``stage``: of the Failure that a crash or a timeout becomes. ``data_bytes``: of the constants that the
        call maps. Raises TunerError if no process can be started, MachineError for a full disk.
        """
        self.submit(method, *args, stage=stage, timeout_s=timeout_s, data_bytes=data_bytes)
        try:
            while not isinstance(news := self.wait(), Reply):
                self.go_ahead()
        finally:
            if self.is_busy:  # interrupted
                self.kill()
        return news

    def call(self, method: str, *args: object, stage: Stage, timeout_s: float, data_bytes: int = 0) -> Any:
        """Calls a method of the child's service and returns its value.

        ``stage``: of a crash or a timeout. ``data_bytes``: of the constants that the call maps. Raises
        CandidateError for a Failure, TunerError if no process can be started, MachineError for a full disk.
        """
        reply = self.ask(method, *args, stage=stage, timeout_s=timeout_s, data_bytes=data_bytes)
        if isinstance(reply.value, Failure):
            cause = ChildTraceback(f"in the child process\n{self._trace}") if self._trace else None
            raise CandidateError(reply.value.stage, reply.value.reason) from cause
        return reply.value

    def go_ahead(self) -> None:
        """Lets the child continue a call that has announced an Event and waits."""
        if self._child is not None:
            self._child.send(GoAhead())

    def poll(self) -> Reply | Event | None:
        """Returns the child's Reply or Event; None: none yet, or the child is paused or not started.

        Does not wait. Enforces the limits of time and memory. Raises TunerError if the child does not start,
        MachineError where the machine fails, as by a full disk.
        """
        if self._child is None or self._paused_s is not None:
            return None
        has_ended = self._child.has_ended  # before reading, so that the child's last message is read
        try:
            message = self._child.receive()
        except Exception as error:  # noqa: BLE001 - pickle raises anything for garbage
            return self._fail(f"sent no message but {type(error).__name__}: {error}")
        if message is not None:
            return self._hear(message)
        if has_ended:
            return self._fail(None)
        return self._enforce()

    def wait(self) -> Reply | Event:
        """Waits for the child's next Event or Reply and returns it.

        Raises RuntimeError if no call is in progress. Sleeps first, as polling takes the processor from the
        child.
        """
        news = None
        while news is None:
            if self._call is None or self._child is None:
                raise RuntimeError(f"{self._spec.name} worker has nothing to wait for")
            sleep_until_news([self._child], TICK_S)
            news = self.poll()
        return news

    def pause(self) -> None:
        """Stops the child's process group until ``resume``; the pause does not count for its time limit."""
        if self._child is not None and self._paused_s is None:
            self._child.stop()
            self._paused_s = self._clock()

    def resume(self) -> None:
        """Resumes the child's process group after ``pause``; does nothing to a child that is not paused."""
        if self._child is not None and self._paused_s is not None:
            self._began_s += self._clock() - self._paused_s
            self._child.go_on()
        self._paused_s = None

    def kill(self) -> str:
        """Kills the child process and its descendants, and drops its call.

        Returns how the child ended: "killed by SIGKILL"; "" if there was no child.
        """
        child = self._child
        self._child = None
        self._call = None
        self._paused_s = None
        self._stopped_s = None
        if child is None:
            return ""
        return child.destroy()

    def _begin(self, call: _Call) -> None:
        assert self._child is not None
        self._child.forget_output()
        self._sent_bytes = self._child.send(call.request)
        self._call = call
        if self._is_ready:
            self._began_s = self._clock()

    def _hear(self, message: Message) -> Reply | Event | None:
        match message:
            case Ready():
                self._is_ready = self._was_ready = True
                self._began_s = self._clock()  # the call waited for the child
                return self.poll()
            case ServiceDefect(line, is_machines=True) if self._is_ready:
                self.kill()
                raise MachineError(f"{self._spec.name} worker: {line}")
            case ServiceDefect(line, trace) if self._call is not None and self._is_ready:
                log.debug("%s worker: %s", self._spec.name, trace)
                self._trace = trace
                return self._done(Reply(Failure(self._call.stage, line)))
            case ServiceDefect(line, trace):
                log.debug("%s worker: %s", self._spec.name, trace)
                self.kill()
                raise TunerError(f"{self._spec.name} worker did not start: {line}")
            case Reply() if self._call is not None:
                return self._done(message)
            case Event() if self._call is not None:
                return message
        return self._fail(f"sent {type(message).__name__} unasked")

    def _done(self, reply: Reply) -> Reply:
        self._call = None
        self._served += 1
        return replace(reply, seconds=self._clock() - self._began_s)

    def _enforce(self) -> Reply | None:
        assert self._child is not None
        self._child.cut_output()
        if self._is_stopped_by_another():
            return self._again("stopped by a signal")
        if self._call is not None:
            mapped_bytes = self._call.data_bytes
            more_bytes = MEMORY_PER_SENT_BYTE * self._sent_bytes + MEMORY_PER_DATA_BYTE * mapped_bytes
            limit_bytes = self._memory_bytes + more_bytes
            if self._child.resident_bytes > limit_bytes:
                reason = f"{EXCEEDED} {limit_bytes // MIB} MiB of memory"
                if more_bytes >= MIB:
                    data = f"its text of {self._sent_bytes / MIB:.1f} MiB"
                    data += f" and its constants of {mapped_bytes / MIB:.1f} MiB"
                    reason += f", {more_bytes // MIB} of them for {data}"
                return self._fail(self._in_step(reason))
        if self._is_ready and self._call is None:
            return None
        if self._call is not None and self._is_ready:
            timeout_s = self._call.timeout_s
        else:
            timeout_s = self._start_timeout_s
        timeout_s *= self._time_limit_factor
        if self._clock() - self._began_s < timeout_s:
            return None
        reply = self._fail(self._in_step(f"{TIMED_OUT} {round(timeout_s, 1):g} s"))
        return None if reply is None else replace(reply, is_doubtful=False)  # not caused by an earlier call

    def _in_step(self, reason: str) -> str:
        """Returns a reason with the step that the child has named: "timed out after 10 s in the kernel"."""
        assert self._child is not None
        step = self._child.step
        if step:
            return f"{reason} in {step}"
        return reason

    def _fail(self, reason: str | None) -> Reply | None:
        call = self._call
        is_ready = self._is_ready
        is_doubtful = self._served > 0
        seconds = self._clock() - self._began_s
        if not is_ready and reason is None:
            return self._again(None)
        ending = self.kill()
        if not is_ready:
            raise TunerError(f"{self._spec.name} worker did not start: {reason or ending}")
        if call is None:
            return None
        return Reply(Failure(call.stage, reason or ending), seconds, is_doubtful)

    def _is_stopped_by_another(self) -> bool:
        """Returns whether another process has stopped the child for longer than STOPPED_LIMIT_S."""
        assert self._child is not None
        if not self._child.is_stopped:
            self._stopped_s = None
            return False
        self._stopped_s = self._clock() if self._stopped_s is None else self._stopped_s
        return self._clock() - self._stopped_s > STOPPED_LIMIT_S

    def _again(self, reason: str | None) -> Reply | None:
        """Starts a child and its call again after a signal from outside (SIGKILL, SIGSTOP), 3 times in all.

        Returns None if the child was started again or had no call, else a Reply with a Failure. Raises
        TunerError if no child has been ready yet, or if the child ended in another way. ``reason``: "stopped
        by a signal"; None: the child has ended.
        """
        call = self._call
        is_starting = not self._is_ready
        seconds = self._clock() - self._began_s
        ending = self.kill()
        self._attempts += 1
        reason = reason or ending
        is_chance = reason != ending or ending.startswith(KILLED)
        if is_chance and self._attempts < START_ATTEMPTS:
            self.start()
            if call is not None:
                self._begin(call)
            return None
        if is_starting:
            reason = f"{self._spec.name} worker did not start: {reason}"
        if not self._was_ready or not is_chance:
            raise TunerError(reason)
        if call is None:
            return None
        return Reply(Failure(call.stage, f"{reason}, {self._attempts} attempts"), seconds)
