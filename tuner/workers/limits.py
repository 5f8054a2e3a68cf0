"""How long and how large a child's work may grow."""

from dataclasses import dataclass

from tuner.core.problem import Problem
from tuner.core.target import Effort

SLOWEST_FLOP_PER_S = 1e9  # a plain scalar loop reaches this: what is slower than this counts as a hang
REFERENCE_FLOP_PER_S = 5e9  # float64 numpy on one core, the slowest machine tried
CALLS = 20  # of the kernel: 2 to verify, warm-up, first samples, and room for a slow candidate
GPU_CALLS = 60  # of a kernel that is slow but not hopeless: 20 warm samples, 20 cold ones, and around them


@dataclass(frozen=True)
class Limits:
    """Limits of one child."""

    compile_timeout_s: float = 30.0
    judge_timeout_s: float = 10.0  # for load and inputs; calls and the reference come on top
    memory_bytes: int = 8 << 30  # resident
    slowest_flop_per_s: float = SLOWEST_FLOP_PER_S
    calls: int = CALLS  # that a candidate of the slowest kind is given time for

    def __post_init__(self) -> None:
        """Raises ValueError for a limit that nothing can keep."""
        if (
            min(
                self.compile_timeout_s,
                self.judge_timeout_s,
                self.memory_bytes,
                self.slowest_flop_per_s,
                self.calls,
            )
            <= 0
        ):
            raise ValueError(f"limits: found {self}, allowed positive numbers")

    def judge_within_s(
        self, problem: Problem, effort: Effort, call_s: float | None, artifacts: int = 1
    ) -> float:
        """Returns how long judging may take when a call is expected to take ``call_s`` (None: not known)."""
        reference_s = problem.flop / REFERENCE_FLOP_PER_S
        return self.judge_timeout_s + reference_s + artifacts * self.timing_s(problem, effort, call_s)

    def timing_s(self, problem: Problem, effort: Effort, call_s: float | None) -> float:
        """Returns how long the calls of one artifact may take; ``call_s`` None: those of the slowest kind."""
        call_s = problem.flop / self.slowest_flop_per_s if call_s is None else call_s
        return self.calls * call_s + 4 * effort.budget_s
