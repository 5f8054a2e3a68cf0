"""How long and how large a child's work may grow."""

from dataclasses import dataclass

from tuner.problem import Problem
from tuner.target import Effort

SLOWEST_FLOP_PER_S = 1e9  # a plain scalar loop reaches this: what is slower than this counts as a hang
REFERENCE_FLOP_PER_S = 5e9  # float64 numpy on one core, the slowest machine tried
CALLS = 20  # of the kernel: 2 to verify, warm-up, first samples, and room for a slow candidate


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
        call_s = problem.flop / self.slowest_flop_per_s if call_s is None else call_s
        timing_s = self.calls * call_s + 4 * effort.budget_s
        return self.judge_timeout_s + problem.flop / REFERENCE_FLOP_PER_S + artifacts * timing_s
