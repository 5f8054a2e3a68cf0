"""Verifies and times a baseline library on a problem, in a process of its own.

The environment of the process sets the number of threads and nothing that would slow the library down.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from tuner.core.errors import TunerError
from tuner.core.problem import Problem
from tuner.core.record import Measurement
from tuner.core.runs import Baseline
from tuner.core.target import Effort
from tuner.payload.reference import Inputs, compare, draw, draw_base
from tuner.runtime import timing
from tuner.runtime.cpu.eviction import eviction_of
from tuner.targets.cpu.baseline_libraries import (
    BLIS,
    LIBRARIES,
    MKL,
    ONEDNN,
    ONEDNN_TORCH,
    OPENBLAS,
    chosen_libraries,
)
from tuner.targets.cpu.blis import blis_code
from tuner.targets.cpu.library_matmul import AbstractLibraryMatmul, CompiledLibraryMatmul
from tuner.targets.cpu.mkl import mkl_code
from tuner.targets.cpu.onednn import onednn_code
from tuner.targets.cpu.onednn_torch import TorchOneDnnMatmul
from tuner.targets.cpu.openblas import openblas_code

WIDE = "f32"  # BLAS has no integers, and numpy's integer matmul is far slower than its BLAS
BF16_ROUNDING = 2.0**-8  # relative, of a result stored as bf16
MATMULS: dict[str, Callable[[Problem, Inputs, int], AbstractLibraryMatmul]] = {
    **{
        name: partial(CompiledLibraryMatmul, describe=describe)
        for name, describe in (
            (OPENBLAS, openblas_code),
            (MKL, mkl_code),
            (BLIS, blis_code),
            (ONEDNN, onednn_code),
        )
    },
    ONEDNN_TORCH: TorchOneDnnMatmul,
}


class BaselineService:
    """A baseline library's matmul of one problem, verified once.

    Created in a child process, whose environment sets the library's number of threads.
    """

    def __init__(self, problem: Problem, threads: int, seed: int, library: str = "") -> None:
        """Draws inputs and verifies one result.

        ``library`` is a key of LIBRARIES; "" is the default of the problem's type. Raises TunerError where
        the library is missing or wrong.
        """
        library = library or chosen_libraries("", problem)[0]
        is_widened = problem.dtype in LIBRARIES[library].widened
        plain = replace(problem, epilogue="none", dtype=WIDE if is_widened else problem.dtype)
        self._suffix = f", {plain.dtype} for {problem.dtype}" if is_widened else ""
        rng = np.random.default_rng(seed)
        is_narrow = library == ONEDNN_TORCH and problem.dtype == "bf16" and not problem.output
        rounding = BF16_ROUNDING if is_narrow else 0.0
        inputs = replace(draw(plain, draw_base(plain, rng), rng), result_rounding=rounding)
        self._problem = problem
        self._rng = rng
        self._threads = threads
        self._matmul = _matmul(library, plain, inputs, threads)
        self._matmul.repeat(1)
        verdict, worst = compare(inputs, self._matmul.result)
        if not verdict.max_error <= 1.0:
            raise TunerError(f"baseline {self.name}: {worst}")

    @property
    def name(self) -> str:
        """Returns the library's name, version and kernel: "openblas 0.3.30 SkylakeX", "MKL 2026.2 avx512"."""
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


def _matmul(library: str, problem: Problem, inputs: Inputs, threads: int) -> AbstractLibraryMatmul:
    try:
        return MATMULS[library](problem, inputs, threads)
    except OSError as error:  # of the loader
        raise TunerError(f"baseline {library}: cannot be loaded: {error}") from error
