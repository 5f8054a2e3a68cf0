"""Child processes that compile the fusions of a program side by side, one of which then compiles the program.

A compiled fusion is kept on disk (``tuner.runtime.compiled_files``), where the child that compiles the
program finds it. That child compiles again what failed, so it reports an error as if it had been alone.
"""

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, TypeVar, final

from tuner.core.errors import EXCEEDED, TIMED_OUT, CandidateError, Failure, Stage
from tuner.core.progress import (
    CompileObserver,
    FusionEnded,
    FusionsFound,
    FusionStarted,
    ignore_compile_event,
)
from tuner.core.requests import WORKERS_LIMIT
from tuner.runtime.cpu.host import usable_processors
from tuner.runtime.workers.child_process import sleep_until_news
from tuner.runtime.workers.processes import TICK_S
from tuner.runtime.workers.protocol import CALL, Factory, Reply, ServiceSpec
from tuner.runtime.workers.worker import MEMORY_BYTES, Worker

if TYPE_CHECKING:
    from tuner.models.linked_programs import CompileTask

FUSION_LIMIT_S = 30.0  # of compiling a fusion, which takes less than a second on a processor of its own
LEAST_TASKS = 4  # only more fusions are worth the second of processor time that starting a child takes
Value = TypeVar("Value")


def called(work: Callable[[], Value]) -> Value:
    """Calls ``work`` and returns its result: the service of the child processes, which takes any work."""
    return work()


def compiled(task: "CompileTask") -> None:
    """Compiles a fusion, or the code of a program's weights, and writes the code to ``compiled_files``.

    Runs in a child process. The child that compiles the whole program reads the code from that folder.
    """
    task.compile_with_machine_code()


def shown_progress() -> AbstractContextManager[CompileObserver]:
    """Returns a context manager that gives an observer, which shows on stderr how much is compiled."""
    from tuner.results.output.compile_progress import compile_progress  # not at start-up

    return compile_progress()


@final
class CompilingChildren:
    """The child process that compiles programs, and helper processes that also compile fusions.

    All of these processes end with the thread that starts them. ``name``: the name of the service, for
    messages.
    """

    def __init__(self, name: str) -> None:
        self._spec = ServiceSpec(name, Factory("tuner.models.service:loaded_service"))
        self._first = Worker(self._spec, MEMORY_BYTES)
        self._helpers: list[Worker] = []

    @property
    def first(self) -> Worker:
        """Returns the worker that compiles programs."""
        return self._first

    def start(self) -> None:
        """Starts the first child and the helper processes; returns before they are ready."""
        self._first.start()
        while len(self._helpers) < min(WORKERS_LIMIT, usable_processors().allowed) - 1:
            self._helpers.append(Worker(self._spec, MEMORY_BYTES))
            self._helpers[-1].start()

    def call(self, work: Callable[[], Value], stage: Stage, timeout_s: float, data_bytes: int = 0) -> Value:
        """Calls ``work``, a ``partial`` of an importable function, in the first child; returns its result.

        ``data_bytes``: of the constants that ``work`` maps, for which the child may have more memory. Raises
        the CandidateError of ``work``; CandidateError(``stage``) where the child crashes or the call takes
        more than ``timeout_s`` seconds; TunerError where no process can be started.
        """
        value: Value = self._first.call(CALL, work, stage=stage, timeout_s=timeout_s, data_bytes=data_bytes)
        return value

    def compile_fusions(
        self,
        missing: "Callable[[], tuple[CompileTask, ...]]",
        timeout_s: float,
        observe: CompileObserver = ignore_compile_event,
    ) -> None:
        """Compiles tasks in all child processes at the same time, then ends the helper processes.

        Args:
            missing: returns the tasks that are left to compile; called in the first child, again after each
                round in which a task was given up.
            timeout_s: limit of a call of ``missing``, and of a task that cannot be compiled in another way.
            observe: called when a task begins and when it ends.

        A task that crashes its child, or takes longer than FUSION_LIMIT_S, is given up; the next
        configuration of its fusion is compiled in its place. Raises the errors of ``missing``, and
        CandidateError(COMPILE) where a task that has no other configuration takes longer than ``timeout_s``,
        or too much memory.
        """
        try:
            tasks = self.call(missing, Stage.COMPILE, timeout_s)
            if len(tasks) > (0 if self._helpers else LEAST_TASKS):
                self.start()
            while tasks and _compile((self._first, *self._helpers), tasks, timeout_s, observe):
                tasks = self.call(missing, Stage.COMPILE, timeout_s)
        finally:
            self.end_helpers()

    def close(self) -> None:
        """Ends all children."""
        self.end_helpers()
        self._first.kill()

    def end_helpers(self) -> None:
        """Ends the helper processes; the child that compiles programs stays."""
        while self._helpers:
            self._helpers.pop().kill()


def _compile(
    workers: Sequence[Worker], tasks: "Sequence[CompileTask]", timeout_s: float, observe: CompileObserver
) -> bool:
    """Compiles tasks in children; returns whether one was given up, which is compiled in another way."""
    waiting = deque(tasks)
    busy = dict[Worker, "CompileTask"]()
    has_next = False
    observe(FusionsFound(len(tasks)))
    try:
        while waiting or busy:
            for worker in workers:
                reply = worker.poll() if worker in busy else None
                if isinstance(reply, Reply):
                    task = busy.pop(worker)
                    if _has_crashed(worker, reply) and reply.is_doubtful:
                        waiting.appendleft(task)  # again, in a new child
                    else:
                        has_next |= _has_crashed(worker, reply) and _gave_up(task, reply.value.reason)
                        observe(FusionEnded())
                if waiting and worker not in busy:
                    busy[worker] = waiting.popleft()
                    observe(FusionStarted(busy[worker].name))
                    _submit(worker, busy[worker], timeout_s)
            sleep_until_news([worker.child for worker in busy if worker.child is not None], TICK_S)
    finally:
        for worker in busy:  # interrupted
            worker.kill()
    return has_next


def _submit(worker: Worker, task: "CompileTask", timeout_s: float) -> None:
    limit_s = min(FUSION_LIMIT_S, timeout_s) if task.has_other_way else timeout_s
    worker.submit(CALL, partial(compiled, task), stage=Stage.COMPILE, timeout_s=limit_s)


def _has_crashed(worker: Worker, reply: Reply) -> bool:
    """Returns whether a task ended its child.

    By a crash, or because a limit of time or memory was exceeded.
    """
    return isinstance(reply.value, Failure) and worker.child is None


def _gave_up(task: "CompileTask", reason: str) -> bool:
    """Records that a task is given up for ``reason``; returns whether it can be compiled in another way.

    Raises CandidateError(COMPILE) for a task that took too long, or too much memory, and cannot be compiled
    in another way.
    """
    if task.has_other_way:
        return task.give_up(reason)
    if reason.startswith((TIMED_OUT, EXCEEDED)):
        raise CandidateError(Stage.COMPILE, f"{task.name}: {reason}")
    return False
