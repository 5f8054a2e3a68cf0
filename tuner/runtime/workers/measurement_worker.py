"""The one child process that verifies and times candidates.

A call that an earlier call may have broken is repeated in a fresh child; after a failure of running code
the child is replaced.
"""

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any, final

from tuner.core.errors import FAULT, Failure, Stage
from tuner.core.interfaces import Effort
from tuner.core.problem import Problem
from tuner.core.progress import KERNEL, TIMING
from tuner.runtime.workers.child_process import ChildProcess
from tuner.runtime.workers.protocol import Event, Reply, ServiceSpec
from tuner.runtime.workers.services import is_of_a_broken_process
from tuner.runtime.workers.worker import Worker

WHY_FAULT = "as by an access outside of its operands or a write to an input"
# Reasons that name neither a step of a compiler nor what the child printed.
UNEXPLAINED = (FAULT, f"{FAULT} in {KERNEL}", f"{FAULT} in {TIMING}")
LockContext = Callable[[], contextlib.AbstractContextManager[None]]


def nothing_to_quiet() -> contextlib.AbstractContextManager[None]:
    """Returns a context manager that does nothing: the default where nothing has to be stopped or locked."""
    return contextlib.nullcontext()


@final
class MeasurementWorker:
    """The one child process that verifies and times candidates; other work is stopped while it times."""

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
        self._exclusive = exclusive
        self._worker.start()

    @property
    def children(self) -> list[ChildProcess]:
        """Returns a list of the child process, for a caller that waits for messages; [] where none runs."""
        if self._worker.child is None:
            return []
        return [self._worker.child]

    def poll(self) -> None:
        """Receives messages of the child while it starts, and enforces its limits; does not wait."""
        self._worker.poll()

    def kill(self) -> None:
        """Kills the child process; ``ask`` starts another."""
        self._worker.kill()

    def ask(
        self, method: str, problem: Problem, work: Any, effort: Effort, seed: int, timeout_s: float
    ) -> Reply:
        """Calls the child's service, ``method`` "evaluate" or "remeasure", and returns its reply.

        ``work``: an ``Artifact`` to evaluate, or a ``Group`` to re-measure. Repeats the call in a new child
        if the old one may have been damaged by earlier calls. After a failure of code that ran, the child is
        replaced.
        """
        self._worker.submit(method, problem, work, effort, seed, stage=Stage.RUN, timeout_s=timeout_s)
        reply = self._evaluated()
        if reply.is_doubtful:
            return self.ask(method, problem, work, effort, seed, timeout_s)
        if is_of_a_broken_process(reply.value):
            self._worker.kill()
        self._worker.start()
        if isinstance(reply.value, Failure) and reply.value.reason in UNEXPLAINED:
            return replace(reply, value=Failure(reply.value.stage, f"{reply.value.reason}, {WHY_FAULT}"))
        return reply

    def _evaluated(self) -> Reply:
        """Waits for the reply to a call. An Event means that the child is about to time.

        Then other work stops and other tuners are locked out until the reply, and the child may go on.
        """
        with contextlib.ExitStack() as until_reported:
            while not isinstance(news := self._worker.poll(), Reply):
                if isinstance(news, Event):
                    until_reported.enter_context(self._quiet())
                    self._worker.pause()  # to wait for another tuner does not count against the child's time
                    try:
                        until_reported.enter_context(self._exclusive())
                    finally:
                        self._worker.resume()
                    self._worker.go_ahead()
                self._meanwhile()
        return news
