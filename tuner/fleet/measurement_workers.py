"""The measurement workers that a node keeps: a few child processes, each with the arrays of one problem."""

import collections
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

from tuner.core.problem import Problem
from tuner.fleet.work import FleetWork
from tuner.tuning.outcome_source import BenchChildren
from tuner.workers.measurement_worker import LockContext, MeasurementWorker
from tuner.workers.services import evaluation_spec

KEPT: Final = 4  # each holds the arrays of its problem
GIB: Final = 1 << 30


@dataclass(frozen=True)
class _Kept:
    """A worker, what its process was started for, and the limit of its resident memory."""

    worker: MeasurementWorker
    children: BenchChildren
    memory_bytes: int

    def serves(self, children: BenchChildren) -> bool:
        """Returns whether the process can work on a problem with these child processes as well."""
        one, other = self.children, children
        is_equal = (one.evaluator, one.environment, one.device) == (
            other.evaluator,
            other.environment,
            other.device,
        )
        return is_equal and children.limits.memory_bytes <= self.memory_bytes


@final
class MeasurementWorkers:
    """The measurement workers of a node, by problem and threads; four (KEPT) at most, one of which works.

    A problem without a worker takes over the process of the worker that was idle for longest, where it can
    serve the problem: the runs of a group alternate between more problems than processes are kept.
    """

    def __init__(
        self, meanwhile: Callable[[], None], quiet: LockContext, exclusive: Callable[[str], LockContext]
    ) -> None:
        """Takes what ``MeasurementWorker`` does; ``exclusive`` returns the lock of a device, by its name."""
        self._meanwhile = meanwhile
        self._quiet = quiet
        self._exclusive = exclusive
        self._kept: collections.OrderedDict[tuple[Problem, int], _Kept] = collections.OrderedDict()

    def of(self, work: FleetWork, children: Callable[[], BenchChildren]) -> MeasurementWorker:
        """Returns the worker of the problem of ``work``.

        ``children`` is called where the problem has no worker yet, and returns its child processes.
        """
        key = (work.problem, work.threads)
        if key not in self._kept:
            described = children()
            self._kept[key] = self._freed(described) or self._started(described)
        self._kept.move_to_end(key)
        return self._kept[key].worker

    def kill(self, work: FleetWork) -> None:
        """Kills the worker of the problem of ``work``, whatever it is doing."""
        with contextlib.suppress(KeyError):
            self._kept.pop((work.problem, work.threads)).worker.kill()

    def kill_all(self) -> None:
        """Kills all workers."""
        while self._kept:
            self._kept.popitem()[1].worker.kill()

    def _freed(self, children: BenchChildren) -> _Kept | None:
        """Returns the worker that was idle for longest if no more may be kept; None where it is no use."""
        if len(self._kept) < KEPT:
            return None
        _, idle = self._kept.popitem(last=False)
        if idle.serves(children):
            return idle
        idle.worker.kill()
        return None

    def _started(self, children: BenchChildren) -> _Kept:
        memory_bytes = -(-children.limits.memory_bytes // GIB) * GIB  # so that similar problems fit as well
        worker = MeasurementWorker(
            evaluation_spec(children.evaluator, children.environment),
            memory_bytes,
            meanwhile=self._meanwhile,
            quiet=self._quiet,
            exclusive=self._exclusive(children.device),
        )
        return _Kept(worker, children, memory_bytes)
