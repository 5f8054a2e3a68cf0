"""The one child process that verifies and times candidates.

A call that an earlier call may have broken is repeated in a fresh child; after a failure of running code the
child is replaced.
"""

import contextlib
from collections.abc import Callable
from typing import Any, final

from tuner.core.errors import RAN, Failure, Stage
from tuner.core.problem import Problem
from tuner.core.target import Effort
from tuner.workers.child_process import ChildProcess
from tuner.workers.protocol import Event, Reply, ServiceSpec
from tuner.workers.worker import Worker

LockContext = Callable[[], contextlib.AbstractContextManager[None]]


def quiet_already() -> contextlib.AbstractContextManager[None]:
    """Returns a context that does nothing, for a process where nothing else runs."""
    return contextlib.nullcontext()


@final
class MeasurementWorker:
    """Evaluates candidates in a child process, one call at a time; the machine is kept quiet while timing."""

    def __init__(
        self,
        spec: ServiceSpec,
        memory_bytes: int,
        *,
        meanwhile: Callable[[], None],  # called repeatedly while the child works; waits a little
        quiet: LockContext = quiet_already,  # held while timing: stops the tuner's other work
        exclusive: LockContext = quiet_already,  # held while timing: excludes other tuners
    ) -> None:
        self._worker = Worker(spec, memory_bytes)
        self._meanwhile = meanwhile
        self._quiet = quiet
        self._turn = exclusive
        self._worker.start()

    @property
    def children(self) -> list[ChildProcess]:
        """Returns the process to wait for, [] where none runs."""
        return [] if self._worker.child is None else [self._worker.child]

    def poll(self) -> None:
        """Receives messages of a child that is starting."""
        self._worker.poll()

    def kill(self) -> None:
        """Kills the child, whatever it is doing."""
        self._worker.kill()

    def ask(
        self, method: str, problem: Problem, work: Any, effort: Effort, seed: int, timeout_s: float
    ) -> Reply:
        """Returns the child's reply; repeats a call in a fresh child if an earlier one may have broken it."""
        self._worker.submit(method, problem, work, effort, seed, stage=Stage.RUN, timeout_s=timeout_s)
        reply = self._evaluated()
        if reply.is_doubtful:
            return self.ask(method, problem, work, effort, seed, timeout_s)
        if isinstance(reply.value, Failure) and reply.value.stage in RAN:
            self._worker.kill()
        self._worker.start()
        return reply

    def _evaluated(self) -> Reply:
        with contextlib.ExitStack() as until_reported:
            while not isinstance(news := self._worker.poll(), Reply):
                if isinstance(news, Event):
                    until_reported.enter_context(self._quiet())
                    self._take_lock(until_reported)
                    self._worker.go_ahead()
                self._meanwhile()
        return news

    def _take_lock(self, until_reported: contextlib.ExitStack) -> None:
        """Waits while another tuner times; the wait does not count against the child's time limit."""
        self._worker.pause()
        try:
            until_reported.enter_context(self._turn())
        finally:
            self._worker.resume()
