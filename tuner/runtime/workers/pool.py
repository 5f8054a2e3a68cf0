"""A pool of child processes that compile scripts in parallel."""

import contextlib
from collections import deque
from collections.abc import Iterator

from tuner.core.errors import Stage
from tuner.core.interfaces import Script
from tuner.core.problem import Problem
from tuner.runtime.workers.child_process import ChildProcess
from tuner.runtime.workers.limits import Limits
from tuner.runtime.workers.protocol import Reply, ServiceSpec
from tuner.runtime.workers.worker import Worker


class CompilePool:
    """Several child processes that compile scripts in parallel, with a queue of scripts."""

    def __init__(self, spec: ServiceSpec, workers: int, limits: Limits) -> None:
        """Starts the children immediately: their imports overlap with the caller's further work.

        Raises ValueError for fewer than one worker.
        """
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
        """Kills all children; what they compile is lost."""
        for worker in self._workers:
            worker.kill()
