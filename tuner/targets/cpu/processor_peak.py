"""The highest flop/s that this processor was seen to reach; impossible times are refused."""

from collections.abc import Callable
from typing import final

from tuner.core.errors import CandidateError, Stage
from tuner.core.machine import Machine
from tuner.core.plausibility import most_flop_per_s
from tuner.core.problem import Problem
from tuner.core.records import Measurement


@final
class ProcessorPeak:
    """The highest flop/s per type that this processor was seen to reach.

    Times that no such processor can reach by its documents are refused. A kernel above the measured peak is
    verified and timed again by the evaluator, which then calls ``rise``.
    """

    def __init__(self, machine: Machine, threads: int, probe: Callable[[str], float]) -> None:
        """``threads``: that kernels run on; ``probe``: function dtype -> flop/s that measures the peak."""
        self._machine = machine
        self._threads = threads
        self._probe = probe
        self._flop_per_s: dict[str, float] = {}  # by dtype

    def require_possible(self, problem: Problem, measurement: Measurement) -> None:
        """Raises CandidateError(VERIFY) for a time that needs more flop/s than such processors can reach."""
        reached = _reached(problem, measurement)
        limit = most_flop_per_s(problem, self._machine, self._threads)
        if reached > limit:
            raise CandidateError(
                Stage.VERIFY,
                f"faster than this processor: found {reached / 1e9:.4g} GFLOP/s, allowed {limit / 1e9:.4g}, "
                "the most that its instructions can do",
            )

    def is_exceeded(self, problem: Problem, measurement: Measurement) -> bool:
        """Returns whether a time needs more flop/s than the measured peak of the problem's type.

        A peak that seems to be exceeded is measured once more, as clocks may have risen.
        """
        if problem.multiplied_dtype not in self._flop_per_s:
            self._flop_per_s[problem.multiplied_dtype] = self._probe(problem.multiplied_dtype)
        reached = _reached(problem, measurement)
        if reached > self._flop_per_s[problem.multiplied_dtype]:
            again = self._probe(problem.multiplied_dtype)
            self._flop_per_s[problem.multiplied_dtype] = max(
                again, self._flop_per_s[problem.multiplied_dtype]
            )
        return reached > self._flop_per_s[problem.multiplied_dtype]

    def rise(self, problem: Problem, measurement: Measurement) -> None:
        """Increases the peak to the flop/s of ``measurement``, which was verified; does not lower it."""
        known = self._flop_per_s.get(problem.multiplied_dtype, 0.0)
        self._flop_per_s[problem.multiplied_dtype] = max(known, _reached(problem, measurement))


def _reached(problem: Problem, measurement: Measurement) -> float:
    return problem.flop / measurement.interval_s[1]  # by the slow end
