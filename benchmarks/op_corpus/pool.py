"""Child processes that check modules, next to each other: a crash or a hang is an outcome."""

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from benchmarks.op_corpus.outcome import CRASH, HANG, OpOutcome
from tuner.core.errors import TIMED_OUT, Failure, Stage
from tuner.runtime.workers.protocol import CALL, ServiceSpec
from tuner.runtime.workers.worker import Worker

LIMIT_S = 120.0  # of one module: a sample compiles in a second, a dozen in several
MEMORY_BYTES = 6 << 30
Task = TypeVar("Task")
Row = TypeVar("Row")


def all_checked(
    tasks: list[Task],
    spec: ServiceSpec,
    check: Callable[[Worker, Task], Row],
    keep: Callable[[Row], None],
    jobs: int,
    limit_s: float,
) -> None:
    """Checks tasks in ``jobs`` processes and keeps each row; begins none after ``limit_s`` seconds."""
    waiting = deque(tasks)
    lock = threading.Lock()
    start_s = time.monotonic()

    def serve() -> None:
        worker = Worker(spec, MEMORY_BYTES)
        while time.monotonic() - start_s < limit_s:
            try:
                task = waiting.popleft()
            except IndexError:
                break
            row = check(worker, task)
            with lock:
                keep(row)
        worker.kill()

    threads = [threading.Thread(target=serve) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def asked(worker: Worker, *arguments: Any) -> Any:
    """Returns what the service returns; an OpOutcome where its process crashes or hangs."""
    value = worker.ask(CALL, *arguments, stage=Stage.RUN, timeout_s=LIMIT_S).value
    if isinstance(value, Failure):
        kind = HANG if TIMED_OUT in value.reason else CRASH
        return OpOutcome(kind, value.reason)
    return value
