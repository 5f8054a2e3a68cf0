"""How long and how large a child's work may grow."""

import math
from dataclasses import dataclass

from tuner.core.problem import Problem
from tuner.core.target import Effort

SLOWEST_FLOP_PER_S = 1e9  # a plain scalar loop reaches this: what is slower than this counts as a hang
REFERENCE_FLOP_PER_S = 5e9  # float64 numpy on one core, the slowest machine tried
CALLS = 20  # of the kernel: 2 to verify, warm-up, first samples, and room for a slow candidate
BUSY = 3  # times slower than alone: a processor shared with two other programs
SAMPLE_S = 1e-3  # least duration of a sample, as ``tuner.runtime.timing`` has it
# Elements of A, B and twice C per second that are drawn, filled and compared around each sample: half of
# what one core did with 64x64x64, the slowest shape tried, since a short sample follows another comparison.
UNTIMED_ELEMENTS_PER_S = 1e7
GPU_CALLS = 60  # of a kernel that is slow but not hopeless: 20 warm samples, 20 cold ones, and around them


@dataclass(frozen=True)
class Limits:
    """Limits of one child."""

    compile_timeout_s: float = 30.0
    evaluation_timeout_s: float = 10.0  # for load and inputs; calls and the reference come on top
    memory_bytes: int = 8 << 30  # resident
    slowest_flop_per_s: float = SLOWEST_FLOP_PER_S
    calls: int = CALLS  # that a candidate of the slowest kind is given time for

    def __post_init__(self) -> None:
        """Raises ValueError for a limit that nothing can keep."""
        if (
            min(
                self.compile_timeout_s,
                self.evaluation_timeout_s,
                self.memory_bytes,
                self.slowest_flop_per_s,
                self.calls,
            )
            <= 0
        ):
            raise ValueError(f"limits: found {self}, allowed positive numbers")

    def evaluation_limit_s(self, problem: Problem, effort: Effort, call_s: float | None) -> float:
        """Returns how long judging may take when a call is expected to take ``call_s`` (None: not known)."""
        reference_s = problem.flop / REFERENCE_FLOP_PER_S
        return self.evaluation_timeout_s + reference_s + self.timing_s(problem, effort, call_s)

    def remeasurement_limit_s(
        self, problem: Problem, effort: Effort, call_s: float | None, participants: int
    ) -> float:
        """Returns how long an interleaved timing may take, of which the slowest call takes ``call_s``.

        Around each sample of each participant inputs are drawn and results compared, which follows the size
        of the problem; and on a busy machine, where it matters most that times are taken, all takes longer.
        """
        reference_s = problem.flop / REFERENCE_FLOP_PER_S
        each_s = max(self.timing_s(problem, effort, call_s), self._interleaved_s(problem, effort, call_s))
        return self.evaluation_timeout_s + reference_s + participants * each_s

    def _interleaved_s(self, problem: Problem, effort: Effort, call_s: float | None) -> float:
        """Returns how long one participant may take with all of its samples and what is done around them."""
        call_s = problem.flop / self.slowest_flop_per_s if call_s is None else call_s
        sample_s = 2 * max(call_s, SAMPLE_S)  # a call that is not timed leads each
        samples = min(effort.max_samples, max(effort.min_samples, math.ceil(effort.budget_s / sample_s)))
        return BUSY * samples * (sample_s + _elements(problem) / UNTIMED_ELEMENTS_PER_S)

    def timing_s(self, problem: Problem, effort: Effort, call_s: float | None) -> float:
        """Returns how long the calls of one artifact may take; ``call_s`` None: those of the slowest kind."""
        call_s = problem.flop / self.slowest_flop_per_s if call_s is None else call_s
        return self.calls * call_s + 4 * effort.budget_s


def _elements(problem: Problem) -> int:
    """Returns how many numbers A, B and twice C have, of all matrices of a batch."""
    m, n, k = problem.sizes
    return problem.batch * (m * k + k * n + 2 * m * n)
