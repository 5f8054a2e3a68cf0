"""A child process under limits: a crash, a hang or too much memory becomes a Failure."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from tuner.core.errors import Failure, Stage, TunerError
from tuner.workers.child_process import ChildProcess, sleep_until_news
from tuner.workers.protocol import (
    CallRequest,
    Event,
    GoAhead,
    Message,
    Ready,
    Reply,
    ServiceDefect,
    ServiceSpec,
)

START_TIMEOUT_S = 60.0  # importing the compiler takes 1 s on an idle machine
TICK_S = 0.1  # time-outs and memory are looked at this often; a reply wakes at once
MIB = 1 << 20

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Call:
    stage: Stage
    timeout_s: float


class Worker:
    """Serves one call at a time in a long-lived child; a child that had to be killed is replaced.

    Memory is limited by what is resident, looked at every tick: RLIMIT_AS would count the address space
    that a JIT, an allocator per thread or a CUDA driver reserves and never touches.
    The child dies with the thread that started it (prctl(2), PR_SET_PDEATHSIG): use a Worker in one thread.
    """

    def __init__(
        self, spec: ServiceSpec, memory_bytes: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._spec = spec
        self._memory_bytes = memory_bytes
        self._clock = clock
        self._child: ChildProcess | None = None
        self._call: _Call | None = None
        self._is_ready = False
        self._served = 0  # calls of this child that came to an end
        self._began_s = 0.0  # the start or the call, by the clock; shifted by pauses
        self._paused_s: float | None = None  # since when, by the clock

    @property
    def is_busy(self) -> bool:
        """Tells whether a call is under way."""
        return self._call is not None

    @property
    def child(self) -> ChildProcess | None:
        """Returns the process, for those who wait for several."""
        return self._child

    def start(self) -> None:
        """Starts a child unless there is one, and returns before it is ready."""
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

    def submit(self, method: str, *args: object, stage: Stage, timeout_s: float) -> None:
        """Begins a call; starts a child on demand. ``stage`` is for a Failure the service does not name."""
        if self._call is not None:
            raise RuntimeError(f"{self._spec.name} worker is busy")
        self.start()
        assert self._child is not None
        self._child.forget_output()
        self._child.send(CallRequest(method, args))
        self._call = _Call(stage, timeout_s)
        if self._is_ready:
            self._began_s = self._clock()

    def go_ahead(self) -> None:
        """Lets a service go on that has announced an Event."""
        if self._child is not None:
            self._child.send(GoAhead())

    def poll(self) -> Reply | Event | None:
        """Returns what has happened, without waiting. Raises TunerError when a child cannot start."""
        if self._child is None or self._paused_s is not None:
            return None
        has_ended = self._child.has_ended  # before reading, so that its last words are read
        try:
            message = self._child.receive()
        except Exception as error:  # noqa: BLE001 - pickle raises anything for garbage
            return self._fail(f"sent no message but {type(error).__name__}: {error}")
        if message is not None:
            return self._hear(message)
        return self._fail(None) if has_ended else self._enforce()

    def wait(self) -> Reply | Event:
        """Waits for the call's next Event or its Reply."""
        while (news := self.poll()) is None:
            if self._call is None or self._child is None:
                raise RuntimeError(f"{self._spec.name} worker has nothing to wait for")
            sleep_until_news([self._child], TICK_S)
        return news

    def pause(self) -> None:
        """Stops the child and its group until ``resume``; the time does not count."""
        if self._child is not None and self._paused_s is None:
            self._child.stop()
            self._paused_s = self._clock()

    def resume(self) -> None:
        """Lets a paused child go on."""
        if self._child is not None and self._paused_s is not None:
            self._began_s += self._clock() - self._paused_s
            self._child.go_on()
        self._paused_s = None

    def kill(self) -> str:
        """Ends the child and its group, if there is one; returns how it ended, for people."""
        child, self._child, self._call, self._paused_s = self._child, None, None, None
        return "" if child is None else child.destroy()

    def _hear(self, message: Message) -> Reply | Event | None:
        match message:
            case Ready():
                self._is_ready = True
                self._began_s = self._clock()  # of a call that waited for it
                return self.poll()
            case ServiceDefect(line, trace) if self._call is not None and self._is_ready:
                log.debug("%s worker: %s", self._spec.name, trace)
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
        """Ends a child that is over a limit."""
        assert self._child is not None
        self._child.cut_output()
        if self._call is not None and self._child.resident_bytes > self._memory_bytes:
            return self._fail(f"exceeded {self._memory_bytes // MIB} MiB of memory")
        if self._is_ready and self._call is None:
            return None
        timeout_s = self._call.timeout_s if self._call is not None and self._is_ready else START_TIMEOUT_S
        if self._clock() - self._began_s < timeout_s:
            return None
        reply = self._fail(f"timed out after {round(timeout_s, 1):g} s")
        return None if reply is None else replace(reply, is_doubtful=False)  # nobody else's doing

    def _fail(self, reason: str | None) -> Reply | None:
        """Ends the child for ``reason``, or for how it ended by itself."""
        call, is_ready, is_doubtful = self._call, self._is_ready, self._served > 0
        seconds = self._clock() - self._began_s
        ending = self.kill()
        if not is_ready:
            raise TunerError(f"{self._spec.name} worker did not start: {reason or ending}")
        return None if call is None else Reply(Failure(call.stage, reason or ending), seconds, is_doubtful)
