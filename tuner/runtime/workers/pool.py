"""Pools of child processes: several that compile scripts, and one that verifies and times candidates."""

import contextlib
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, final

from tuner.core.errors import FAULT, Failure, Stage
from tuner.core.interfaces import Effort, Script
from tuner.core.problem import Problem
from tuner.core.progress import KERNEL, TIMING
from tuner.runtime.workers.child_process import ChildProcess
from tuner.runtime.workers.protocol import Event, Limits, Reply, ServiceSpec
from tuner.runtime.workers.services import is_of_a_broken_process
from tuner.runtime.workers.worker import Worker

WHY_FAULT = "as by an access outside of its operands or a write to an input"
# Reasons that name neither a step of a compiler nor what the child printed.
UNEXPLAINED = (FAULT, f"{FAULT} in {KERNEL}", f"{FAULT} in {TIMING}")
LockContext = Callable[[], contextlib.AbstractContextManager[None]]


class CompilePool:
    """Several child processes that compile scripts in parallel, with a queue of scripts."""

    def __init__(self, spec: ServiceSpec, workers: int, limits: Limits) -> None:
        """Starts the children immediately: their imports overlap with the caller's further work."""
        if workers < 1:
            raise ValueError(f"workers: found {workers}, allowed 1 or more")
        self._timeout_s = limits.compile_timeout_s
        self._queue: deque[tuple[int, Problem, Script]] = deque()
        self._workers = [Worker(spec, limits.memory_bytes) for _ in range(workers)]
        self._numbers: dict[Worker, int] = {}  # the number of the script that each busy worker compiles
        self._replies: dict[int, Reply] = {}
        self._count = 0
        self._is_paused = False
        for worker in self._workers:
            worker.start()

    @property
    def children(self) -> list[ChildProcess]:
        """Returns the running child processes, for a caller that waits for messages; [] while paused."""
        if self._is_paused:
            return []
        return [worker.child for worker in self._workers if worker.child is not None]

    def add(self, problem: Problem, script: Script) -> int:
        """Queues a script for compilation; returns the number by which ``take`` returns its outcome."""
        self._count += 1
        self._queue.append((self._count, problem, script))
        self.advance()
        return self._count

    def take(self, number: int) -> Reply | None:
        """Returns the outcome of script ``number`` and forgets it; None while it is not finished."""
        return self._replies.pop(number, None)

    def drop(self, number: int) -> None:
        """Removes script ``number`` from the queue; kills and replaces the child that compiles it."""
        self._queue = deque(queued for queued in self._queue if queued[0] != number)
        for worker, busy_with in tuple(self._numbers.items()):
            if busy_with == number:
                del self._numbers[worker]
                worker.kill()
                worker.start()

    def advance(self) -> None:
        """Collects outcomes and gives queued scripts to idle children, without waiting, unless paused."""
        if self._is_paused:
            return
        for worker in self._workers:
            reply = worker.poll()
            if isinstance(reply, Reply):
                self._replies[self._numbers.pop(worker)] = reply
                worker.start()
            if self._queue and not worker.is_busy:
                number, problem, script = self._queue.popleft()
                self._numbers[worker] = number
                worker.submit("compile", problem, script, stage=Stage.COMPILE, timeout_s=self._timeout_s)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Context manager: all compiling child processes are stopped while its body runs, then resumed."""
        self._is_paused = True
        try:
            for worker in self._workers:
                worker.pause()
            yield
        finally:
            self._is_paused = False
            for worker in self._workers:
                worker.resume()

    def close(self) -> None:
        for worker in self._workers:
            worker.kill()


# The one child process that verifies and times candidates.
#
# A call that an earlier call may have broken is repeated in a fresh child; after a failure of running code
# the child is replaced.


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
        self._worker.kill()

    def ask(
        self, method: str, problem: Problem, work: Any, effort: Effort, seed: int, timeout_s: float
    ) -> Reply:
        """Calls the child's service, ``method`` "evaluate" or "remeasure", and returns its reply.

        ``work``: an artifact or a group. Repeats the call in a new child if the old one may have been damaged
        by earlier calls. After a failure of code that ran, the child is replaced.
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
        """Waits for the reply. An Event means that the child is about to time.

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
