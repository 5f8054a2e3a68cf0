"""Times the CPU baseline: OpenBLAS as numpy ships it (in f32 for i8), or oneDNN through torch for bf16.

Runs in a separate process, whose environment sets the number of threads and nothing that would slow the
library down.
"""

from dataclasses import replace

import numpy as np

from tuner.core.errors import TunerError
from tuner.core.problem import Problem
from tuner.core.record import Measurement
from tuner.core.runs import Baseline
from tuner.core.target import Effort
from tuner.payload.reference import Inputs, compare, draw, draw_base
from tuner.runtime import timing
from tuner.runtime.cpu.eviction import eviction_of
from tuner.targets.cpu.onednn import OneDnnMatmul
from tuner.targets.cpu.openblas import OpenBlasMatmul

WIDENED = {"i8": "f32"}  # BLAS has no integers, and numpy's integer matmul is far slower than its BLAS
BF16_ROUNDING = 2.0**-8  # relative, of a result stored as bf16


class BaselineService:
    """The baseline library's matmul of one problem, verified once: OpenBLAS, or oneDNN for bf16.

    Created in a child process, whose environment sets the library's number of threads.
    """

    def __init__(self, problem: Problem, threads: int, seed: int) -> None:
        """Draws inputs and verifies one result. Raises TunerError where the library is missing or wrong."""
        rng = np.random.default_rng(seed)
        plain = replace(problem, epilogue="none", dtype=WIDENED.get(problem.dtype, problem.dtype))
        self._suffix = f", {plain.dtype} for {problem.dtype}" if problem.dtype in WIDENED else ""
        rounding = BF16_ROUNDING if problem.dtype == "bf16" else 0.0
        inputs = replace(draw(plain, draw_base(plain, rng), rng), result_rounding=rounding)
        self._problem = problem
        self._rng = rng
        self._threads = threads
        self._matmul = _library(plain, inputs, threads)
        self._matmul.repeat(1)
        verdict, worst = compare(inputs, self._matmul.result)
        if not verdict.max_error <= 1.0:
            raise TunerError(f"baseline {self.name}: {worst}")

    @property
    def name(self) -> str:
        """Returns the library's name, version and, of OpenBLAS, kernel: "openblas 0.3.30 SkylakeX"."""
        return self._matmul.name + self._suffix

    def stopwatch(self, lead_calls: int = 0) -> timing.Stopwatch:
        """Returns a stopwatch of the library's matmul on the same inputs, without an epilogue.

        Operands are evicted before each call as the problem's cache state says. Where caches stay warm,
        ``lead_calls`` untimed calls come before each sample of short calls.
        """
        evict = eviction_of(self._problem, self._matmul.operands)
        if evict is not None:
            return timing.after_each(evict, self._matmul.once)
        take = timing.stopwatch_of(self._matmul.repeat)
        return timing.with_untimed_calls(take, lead_calls) if lead_calls else take

    def measure(self, effort: Effort) -> Baseline:
        """Times the library's matmul, without an epilogue; returns times, library name and threads."""
        return Baseline(self.name, self._threads, self.sample(effort))

    def sample(self, effort: Effort) -> Measurement:
        """Times the library's matmul once more, without an epilogue, for as long as ``effort`` says."""
        return timing.measure_by(self.stopwatch(), effort, self._rng)


def _library(problem: Problem, inputs: Inputs, threads: int) -> OpenBlasMatmul | OneDnnMatmul:
    if problem.dtype == "bf16":
        return OneDnnMatmul(problem, inputs, threads)
    return OpenBlasMatmul(problem, inputs, threads)
