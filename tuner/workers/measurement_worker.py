"""The one child process that verifies and times candidates.

A call that an earlier call may have broken is repeated in a fresh child; after a failure of running code the
child is replaced.
"""

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any, final

from tuner.core.errors import RAN, Failure, Stage
from tuner.core.problem import Problem
from tuner.core.target import Effort
from tuner.workers.child_process import ChildProcess
from tuner.workers.protocol import Event, Reply, ServiceSpec
from tuner.workers.worker import Worker

FAULT = "killed by SIGSEGV"
WHY_FAULT = "as by an access outside of its operands or a write to an input"
LockContext = Callable[[], contextlib.AbstractContextManager[None]]


def nothing_to_quiet() -> contextlib.AbstractContextManager[None]:
    """Returns a context manager that does nothing: the default where nothing has to be stopped or locked."""
    return contextlib.nullcontext()


@final
class MeasurementWorker:
    """The one child process that verifies and times candidates; the machine is kept quiet while it times."""

    def __init__(
        self,
        spec: ServiceSpec,
        memory_bytes: int,
        *,
        meanwhile: Callable[[], None],  # called repeatedly while the child works; waits a little
        quiet: LockContext = nothing_to_quiet,  # held while timing: stops the tuner's other work
        exclusive: LockContext = nothing_to_quiet,  # held while timing: excludes other tuners
    ) -> None:
        self._worker = Worker(spec, memory_bytes)
        self._meanwhile = meanwhile
        self._quiet = quiet
        self._turn = exclusive
        self._worker.start()

    @property
    def children(self) -> list[ChildProcess]:
        """Returns a list of the child process, for a caller that waits for messages; [] where none runs."""
        return [] if self._worker.child is None else [self._worker.child]

    def poll(self) -> None:
        """Receives messages of the child while it starts, and enforces its limits; does not wait."""
        self._worker.poll()

    def kill(self) -> None:
        """Kills the child process, whatever it is doing."""
        self._worker.kill()

    def ask(
        self, method: str, problem: Problem, work: Any, effort: Effort, seed: int, timeout_s: float
    ) -> Reply:
        """Calls ``method`` of the child's service and waits for the Reply, with its value or a Failure.

        Args:
            method: "evaluate" or "remeasure".
            problem: The problem of all candidates.
            work: An Artifact, or a Group of artifacts to time interleaved.
            effort: How long to time.
            seed: Of the random inputs.
            timeout_s: Limit of the call in seconds, without waiting for other tuners.

        A call that an earlier call of the child may have broken is repeated in a fresh child.
        """
        self._worker.submit(method, problem, work, effort, seed, stage=Stage.RUN, timeout_s=timeout_s)
        reply = self._evaluated()
        if reply.is_doubtful:
            return self.ask(method, problem, work, effort, seed, timeout_s)
        if isinstance(reply.value, Failure) and reply.value.stage in RAN:
            self._worker.kill()
        self._worker.start()
        if isinstance(reply.value, Failure) and reply.value.reason == FAULT:
            return replace(reply, value=Failure(reply.value.stage, f"{FAULT}, {WHY_FAULT}"))
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
