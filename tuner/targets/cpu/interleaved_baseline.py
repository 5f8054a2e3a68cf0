"""The baseline timed interleaved with kernels: in a separate process, paused while kernels run."""

import os
import weakref
from collections.abc import Callable
from typing import Any, final

from tuner.core.errors import CandidateError, Stage
from tuner.core.problem import Problem
from tuner.payload.reference import reference_bytes
from tuner.runtime.cpu.host_activity import thread_waited_s
from tuner.targets.cpu.baseline import BaselineService
from tuner.targets.cpu.baseline_libraries import baseline_environment
from tuner.workers.limits import REFERENCE_FLOP_PER_S
from tuner.workers.protocol import Factory, ServiceSpec
from tuner.workers.worker import Worker

MEMORY_BYTES = 8 << 30  # in addition to the arrays of the problem
START_TIMEOUT_S = 120.0  # to draw inputs and verify a result, in addition to the float64 reference
INTERLEAVED_TIMEOUT_S = 60.0
# After a pause a library is slower for some calls, however long the calls are. OpenBLAS, 512x512x512 on a
# Cascade Lake: 2.57 ms after one warm-up call of an earlier request, 2.40 after one warm-up call of the same
# request, 2.23 after four; without a pause 2.25.
LEAD_CALLS = 4
ENDED = "baseline: its process has ended"


@final
class InterleavedBaseline:
    """A running process of the baseline library for one problem, paused between its samples.

    The process ends when this object is garbage-collected, or by ``close``.
    """

    def __init__(
        self, problem: Problem, threads: int, seed: int, processors: frozenset[int], library: str = ""
    ) -> None:
        """Starts the baseline on ``processors``; ``library`` is a key of LIBRARIES; "": the default.

        Raises TunerError where the library is missing or wrong, CandidateError(RUN) where its process fails.
        """
        service = "tuner.targets.cpu.interleaved_baseline:InterleavedBaselineService"
        factory = Factory(service, (problem, threads, seed, library))
        spec = ServiceSpec("baseline", factory, baseline_environment(library, threads))
        start_s = START_TIMEOUT_S + problem.flop / REFERENCE_FLOP_PER_S
        memory_bytes = MEMORY_BYTES + 2 * reference_bytes(problem)
        self._worker = Worker(spec, memory_bytes, start_timeout_s=start_s)
        self.close: Callable[[], object] = weakref.finalize(self, self._worker.kill)
        self.problem = problem
        self.waited_s = 0.0  # of the thread that calls ``take``, during samples: both share a processor
        pinned = os.sched_getaffinity(0)
        os.sched_setaffinity(0, processors)  # a child inherits the affinity of the thread that starts it
        try:
            self._worker.start()
        finally:
            os.sched_setaffinity(0, pinned)
        self.name = str(self._call("name", INTERLEAVED_TIMEOUT_S))

    @property
    def has_ended(self) -> bool:
        """Returns whether the baseline's process has ended."""
        return self._worker.child is None or self._worker.child.has_ended

    @property
    def process(self) -> int:
        """Returns the process id of the baseline. Raises CandidateError(RUN) when the process has ended."""
        if self._worker.child is None or self._worker.child.has_ended:
            raise CandidateError(Stage.RUN, ENDED)
        return self._worker.child.pid

    def take(self, times: int) -> float:
        """Resumes the baseline's process for one sample; returns the seconds per matmul.

        The sample has ``times`` matmuls. Raises CandidateError(RUN) where the process has ended or fails.
        """
        if self.has_ended:  # a call would start the process again, on this thread's processor
            raise CandidateError(Stage.RUN, ENDED)
        before_s = thread_waited_s()
        self._worker.resume()
        seconds: float = self._call("sample", INTERLEAVED_TIMEOUT_S, times)
        self.waited_s += thread_waited_s() - before_s
        return seconds

    def _call(self, method: str, timeout_s: float, *arguments: object) -> Any:
        try:
            return self._worker.call(method, *arguments, stage=Stage.RUN, timeout_s=timeout_s)
        except CandidateError as error:
            raise CandidateError(Stage.RUN, f"baseline: {error.reason}") from error
        finally:
            self._worker.pause()


@final
class InterleavedBaselineService:
    """The methods that the baseline's child process offers to its parent: its name, and one timed sample."""

    def __init__(self, problem: Problem, threads: int, seed: int, library: str = "") -> None:
        """Draws inputs and verifies one result. Raises TunerError where the library is missing or wrong."""
        self._service = BaselineService(problem, threads, seed, library)
        self._stopwatch = self._service.stopwatch(LEAD_CALLS)

    def name(self) -> str:
        """Returns the library's name, version and kernel: "openblas 0.3.30 SkylakeX"."""
        return self._service.name

    def sample(self, times: int) -> float:
        """Returns the seconds per matmul of ``times`` matmuls in a row.

        If they are short, 4 untimed matmuls (LEAD_CALLS) run first, to fill the caches.
        """
        return self._stopwatch(times)
