"""A baseline library on a problem, verified and timed in a process of its own: alone, or interleaved."""

import os
import weakref
from collections.abc import Callable
from dataclasses import replace
from pkgutil import resolve_name
from typing import Any, final

import numpy as np

from tuner.core.dtypes import number_type
from tuner.core.errors import CandidateError, Stage, TunerError
from tuner.core.interfaces import Effort
from tuner.core.problem import Problem
from tuner.core.records import Measurement
from tuner.core.runs import Baseline
from tuner.payload.comparison import compare
from tuner.payload.drawing import draw, draw_base
from tuner.payload.reference import reference_bytes
from tuner.runtime import timing
from tuner.runtime.cpu.cold_caches import eviction_of
from tuner.runtime.cpu.timing_conditions import thread_waited_s
from tuner.runtime.extensions import failing_in
from tuner.runtime.workers.limits import REFERENCE_FLOP_PER_S
from tuner.runtime.workers.protocol import Factory, ServiceSpec
from tuner.runtime.workers.worker import Worker
from tuner.targets.cpu import baseline_libraries, blas

# OpenBLAS has no integers and no narrow floats, and numpy's integer matmul is far slower than its BLAS.
WIDE = "f32"
MEMORY_BYTES = 8 << 30  # in addition to the arrays of the problem
START_TIMEOUT_S = 120.0  # to draw inputs and verify a result, in addition to the float64 reference
INTERLEAVED_TIMEOUT_S = 60.0
# After a pause a library is slower for some calls, however long the calls are. OpenBLAS, 512x512x512 on a
# Cascade Lake: 2.57 ms after one warm-up call of an earlier request, 2.40 after one warm-up call of the same
# request, 2.23 after four; without a pause 2.25.
LEAD_CALLS = 4
ENDED = "its process has ended"


class BaselineService:
    """A baseline library's matmul of a problem without its epilogue; lives in a child process."""

    def __init__(self, problem: Problem, threads: int, seed: int, library: str = "") -> None:
        """Draws inputs, computes the matmul once and verifies it.

        ``library``: a key of LIBRARIES, "" for the default. Raises TunerError, without the library's name,
        for a library that is missing, cannot be loaded or gives a wrong result.
        """
        problem = baseline_libraries.compared_problem(problem)
        library = library or baseline_libraries.chosen_libraries("", problem)[0]
        row = baseline_libraries.LIBRARIES[library]
        if row.find() is None:
            raise TunerError("not installed", row.install)
        self._problem = problem
        self._rng = np.random.default_rng(seed)
        self._threads = threads
        self._matmul: blas.AbstractLibraryMatmul | baseline_libraries.AbstractQuantizedMatmul
        suffix = ""
        with failing_in(baseline_libraries.LIBRARIES.extension(library), f"baseline {library!r}"):
            if problem.weights:
                self._matmul = resolve_name(row.quantized)(library, problem, threads, self._rng)
            else:
                self._matmul, suffix = _verified_matmul(problem, threads, self._rng, library)
        #: The library's name, version and kernel: "openblas 0.3.30 SkylakeX", "MKL 2026.2 avx512".
        self.name = self._matmul.name + suffix

    def stopwatch(self, lead_calls: int = 0) -> timing.Stopwatch:
        """Returns a stopwatch that times the matmul.

        Each sample follows ``lead_calls`` untimed calls, unless operands are evicted before each call.
        """
        if isinstance(self._matmul, blas.AbstractLibraryMatmul):
            evict = eviction_of(self._problem, self._matmul.operands)
            if evict is not None:
                return timing.stopwatch_of_cold_calls(evict, self._matmul.once)
            take = timing.stopwatch_of(self._matmul.repeat)
        else:
            take = self._matmul.stopwatch
        if lead_calls:
            return timing.with_untimed_calls(take, lead_calls)
        return take

    def measure(self, effort: Effort) -> Baseline:
        """Times the matmul; returns the times with the library's name and threads."""
        return Baseline(self.name, self._threads, self.sample(effort))

    def sample(self, effort: Effort) -> Measurement:
        """Returns a measurement of the matmul, timed for as long as ``effort`` says."""
        return timing.measure_by(self.stopwatch(), effort, self._rng)


def _verified_matmul(
    problem: Problem, threads: int, rng: np.random.Generator, library: str
) -> tuple[blas.AbstractLibraryMatmul, str]:
    """Returns a library's matmul, verified on inputs of ``rng``, and a note on the types that it multiplies.

    The note ends the library's name: "" where it multiplies the problem's own types. Raises TunerError as
    ``BaselineService`` does.
    """
    is_widened = problem.dtype in baseline_libraries.LIBRARIES[library].widened
    plain = replace(problem, epilogue="none")
    if is_widened:
        plain = replace(plain, dtype=WIDE, output="")
    # torch's oneDNN stores the type of A and B where sums in f32 are asked for
    is_narrow = library == baseline_libraries.ONEDNN_TORCH and not problem.output
    result_rounding = number_type(problem.dtype).rounding if is_narrow else 0.0
    inputs = replace(draw(plain, draw_base(plain, rng), rng), result_rounding=result_rounding)
    try:
        make = resolve_name(baseline_libraries.LIBRARIES[library].matmul)
        matmul = make(plain, inputs, threads)
    except OSError as error:  # of the loader
        raise TunerError(f"cannot be loaded: {error}") from error
    matmul.repeat(1)
    verdict, worst = compare(inputs, matmul.result)
    if not verdict.max_error <= 1.0:
        raise TunerError(worst)
    return matmul, f", {plain.dtype} for {problem.dtype}" if is_widened else ""


# The baseline timed interleaved with kernels: in a separate process, paused while kernels run.


@final
class InterleavedBaseline:
    """A baseline library in a process of its own, paused between samples, timed interleaved with kernels.

    The process ends with this object, or by ``close``.
    """

    def __init__(
        self, problem: Problem, threads: int, seed: int, processors: frozenset[int], library: str = ""
    ) -> None:
        """Starts the process on ``processors``, and verifies the library's matmul there.

        ``library``: a key of LIBRARIES, "" for the default. Raises TunerError where it cannot start,
        CandidateError(RUN) if it ends.
        """
        service = "tuner.targets.cpu.baseline:InterleavedBaselineService"
        factory = Factory(service, (problem, threads, seed, library))
        spec = ServiceSpec("baseline", factory, baseline_libraries.baseline_environment(library, threads))
        start_s = START_TIMEOUT_S + problem.flop / REFERENCE_FLOP_PER_S
        memory_bytes = MEMORY_BYTES + 2 * reference_bytes(problem)
        self._worker = Worker(spec, memory_bytes, start_timeout_s=start_s)
        self.close: Callable[[], object] = weakref.finalize(self, self._worker.kill)
        self.problem = problem
        self.waited_s = 0.0  # by the thread that calls ``take``, for a processor that the baseline uses
        pinned = os.sched_getaffinity(0)
        os.sched_setaffinity(0, processors)  # a child inherits the affinity of the thread that starts it
        try:
            self._worker.start()
        finally:
            os.sched_setaffinity(0, pinned)
        self.name = str(self._call("name", INTERLEAVED_TIMEOUT_S))

    @property
    def has_ended(self) -> bool:
        return self._worker.child is None or self._worker.child.has_ended

    @property
    def process(self) -> int:
        """Returns the id of the baseline's process. Raises CandidateError(RUN) if it has ended."""
        if self._worker.child is None or self.has_ended:
            raise CandidateError(Stage.RUN, ENDED)
        return self._worker.child.pid

    def take(self, times: int) -> float:
        """Runs ``times`` matmuls in the process; returns the seconds per matmul.

        Raises CandidateError(RUN) if the process has ended or does not answer.
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
        finally:
            self._worker.pause()


@final
class InterleavedBaselineService:
    """The methods that an InterleavedBaseline's child process offers to its parent."""

    def __init__(self, problem: Problem, threads: int, seed: int, library: str = "") -> None:
        self._service = BaselineService(problem, threads, seed, library)
        self._stopwatch = self._service.stopwatch(LEAD_CALLS)

    def name(self) -> str:
        """Returns the library's name, version and kernel: "MKL 2026.2 avx512"."""
        return self._service.name

    def sample(self, times: int) -> float:
        """Times ``times`` matmuls by ``BaselineService.stopwatch``; returns the seconds per matmul."""
        return self._stopwatch(times)
