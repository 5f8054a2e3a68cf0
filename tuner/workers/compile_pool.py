"""The compile workers: a queue of scripts, several children, outcomes by number."""

import contextlib
from collections import deque
from collections.abc import Iterator

from tuner.core.errors import Stage
from tuner.core.problem import Problem
from tuner.core.target import Script
from tuner.workers.child_process import ChildProcess
from tuner.workers.limits import Limits
from tuner.workers.protocol import Reply, ServiceSpec
from tuner.workers.worker import Worker


class CompilePool:
    """Compiles in several children at once; none of them runs while the pool is paused."""

    def __init__(self, spec: ServiceSpec, workers: int, limits: Limits) -> None:
        """Starts the children at once: their imports overlap with whatever comes next."""
        if workers < 1:
            raise ValueError(f"workers: found {workers}, allowed 1 or more")
        self._timeout_s = limits.compile_timeout_s
        self._queue: deque[tuple[int, Problem, Script]] = deque()
        self._workers = [Worker(spec, limits.memory_bytes) for _ in range(workers)]
        self._numbers: dict[Worker, int] = {}  # what each busy one works at
        self._replies: dict[int, Reply] = {}
        self._count = 0
        self._is_paused = False
        for worker in self._workers:
            worker.start()

    @property
    def children(self) -> list[ChildProcess]:
        """Returns the processes worth waiting for."""
        if self._is_paused:
            return []
        return [worker.child for worker in self._workers if worker.child is not None]

    def add(self, problem: Problem, script: Script) -> int:
        """Queues a script and returns the number to take its outcome by."""
        self._count += 1
        self._queue.append((self._count, problem, script))
        self.advance()
        return self._count

    def take(self, number: int) -> Reply | None:
        """Returns the outcome (Artifact or Failure) once it is there, one time only."""
        return self._replies.pop(number, None)

    def drop(self, number: int) -> None:
        """Ends the work at a script that nobody waits for any longer."""
        self._queue = deque(each for each in self._queue if each[0] != number)
        for worker, busy_with in tuple(self._numbers.items()):
            if busy_with == number:
                del self._numbers[worker]
                worker.kill()
                worker.start()

    def advance(self) -> None:
        """Collects outcomes and gives queued scripts to idle children, without waiting."""
        if self._is_paused:
            return
        for worker in self._workers:
            reply = worker.poll()
            if isinstance(reply, Reply):
                self._replies[self._numbers.pop(worker)] = reply
                worker.start()
            if self._queue and not worker.is_busy:
                self._give(worker)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Stops every child meanwhile."""
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
        """Ends every child."""
        for worker in self._workers:
            worker.kill()

    def _give(self, worker: Worker) -> None:
        number, problem, script = self._queue.popleft()
        self._numbers[worker] = number
        worker.submit("compile", problem, script, stage=Stage.COMPILE, timeout_s=self._timeout_s)
