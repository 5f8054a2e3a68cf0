"""Limits of child processes for one problem: seconds to compile, evaluate and re-measure, bytes of memory."""

import math
from dataclasses import astuple, dataclass

from tuner.core.interfaces import Effort
from tuner.core.problem import Problem

SLOWEST_FLOP_PER_S = 1e9  # a plain scalar loop reaches this; a slower kernel counts as a hang
REFERENCE_FLOP_PER_S = 5e9  # float64 numpy on one core, on the slowest machine tried
CALLS = 20  # of the kernel: 2 to verify, warm-up, first samples, and a margin for a slow candidate
LIBRARY_START_S = 30.0  # of a baseline library: torch is imported, inputs are drawn
BUSY = 3  # factor by which a processor shared with two other programs is slower
SAMPLE_S = 1e-3  # least duration of a sample, as in ``tuner.runtime.timing``
# Elements of A, B and twice C per second that are drawn, filled and compared around each sample: half of
# what one core reached with 64x64x64, the slowest shape tried, since a short sample has a second comparison.
UNTIMED_ELEMENTS_PER_S = 1e7
GPU_CALLS = 60  # of a slow kernel, not early-stopped: 20 warm samples, 20 cold ones, and calls around them


@dataclass(frozen=True)
class Limits:
    """Limits of the child processes for one problem: seconds to compile and to evaluate, bytes of memory.

    Raises ValueError for a number that is not positive.
    """

    compile_timeout_s: float = 30.0
    evaluation_timeout_s: float = 10.0  # for loading and drawing inputs; calls and the reference are added
    memory_bytes: int = 8 << 30  # resident
    slowest_flop_per_s: float = SLOWEST_FLOP_PER_S
    calls: int = CALLS  # that a kernel of ``slowest_flop_per_s`` has time for
    libraries: int = 1  # the most baseline libraries that a final re-measurement starts and times

    def __post_init__(self) -> None:
        if min(astuple(self)) <= 0:
            raise ValueError(f"limits: found {self}, allowed positive numbers")

    def evaluation_limit_s(self, problem: Problem, effort: Effort, call_s: float | None) -> float:
        """Returns the time limit, in seconds, to load, verify and time an artifact.

        ``call_s``: expected seconds per call; None: those of the slowest allowed kernel.
        """
        reference_s = problem.flop / REFERENCE_FLOP_PER_S
        return self.evaluation_timeout_s + reference_s + self.timing_s(problem, effort, call_s)

    def remeasurement_limit_s(
        self, problem: Problem, effort: Effort, call_s: float | None, participants: int
    ) -> float:
        """Returns the time limit, in seconds, of a final re-measurement of ``participants`` programs.

        ``call_s``: seconds per call of the slowest program; None: those of the slowest allowed kernel.
        Includes the time to start and to time all baseline libraries after the first.
        """
        reference_s = problem.flop / REFERENCE_FLOP_PER_S
        m, n, k = problem.sizes
        elements = problem.batch * (m * k + k * n + 2 * m * n)  # of A, B and twice C
        sample_s = 2 * max(self._call_s(problem, call_s), SAMPLE_S)  # an untimed call precedes each sample
        samples = min(effort.max_samples, max(effort.min_samples, math.ceil(effort.budget_s / sample_s)))
        interleaved_s = BUSY * samples * (sample_s + elements / UNTIMED_ELEMENTS_PER_S)
        program_s = max(self.timing_s(problem, effort, call_s), interleaved_s)
        further = self.libraries - 1
        start_s = self.evaluation_timeout_s + reference_s
        return start_s + participants * program_s + further * (LIBRARY_START_S + reference_s + program_s)

    def timing_s(self, problem: Problem, effort: Effort, call_s: float | None) -> float:
        """Returns the time limit, in seconds, for all calls of one kernel.

        ``call_s``: expected seconds per call; None: those of the slowest allowed kernel.
        """
        return self.calls * self._call_s(problem, call_s) + 4 * effort.budget_s

    def _call_s(self, problem: Problem, call_s: float | None) -> float:
        if call_s is None:
            return problem.flop / self.slowest_flop_per_s
        return call_s
