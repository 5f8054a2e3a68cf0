"""Tells times that this processor cannot reach, which are refused, from times above the peak that is known.

What hardware cannot do follows from documents. A measured peak is the most that was seen: a kernel above it
is verified and timed again, and then it is the peak.
"""

from collections.abc import Callable
from typing import final

from tuner.core.errors import CandidateError, Stage
from tuner.core.machine import Machine
from tuner.core.possible_outcome import most_flop_per_s
from tuner.core.problem import Problem
from tuner.core.record import Measurement


@final
class ProcessorPeak:
    """The highest flop/s by dtype that this processor was seen to reach, at first by a probe."""

    def __init__(self, machine: Machine, threads: int, probe: Callable[[str], float]) -> None:
        """Takes the threads that kernels run on, and a function that measures the flop/s for a dtype."""
        self._machine = machine
        self._threads = threads
        self._probe = probe
        self._flop_per_s: dict[str, float] = {}  # by dtype

    def require_possible(self, problem: Problem, measurement: Measurement) -> None:
        """Raises CandidateError(VERIFY) for a time that is too short for what the processor can do.

        Too short means more flop/s than documents of its instructions allow, see ``most_flop_per_s``.
        """
        reached, limit = (
            _reached(problem, measurement),
            most_flop_per_s(problem, self._machine, self._threads),
        )
        if reached > limit:
            raise CandidateError(
                Stage.VERIFY,
                f"faster than this processor: found {reached / 1e9:.4g} GFLOP/s, allowed {limit / 1e9:.4g}, "
                "the most that its instructions can do",
            )

    def is_exceeded(self, problem: Problem, measurement: Measurement) -> bool:
        """Returns whether a time is shorter than any that was seen here. Measures the peak at first use.

        Measures it again before it returns True: a clock may have risen, another load have ended.
        """
        if problem.dtype not in self._flop_per_s:
            self._flop_per_s[problem.dtype] = self._probe(problem.dtype)
        reached = _reached(problem, measurement)
        if reached > self._flop_per_s[problem.dtype]:
            again = self._probe(problem.dtype)
            self._flop_per_s[problem.dtype] = max(again, self._flop_per_s[problem.dtype])
        return reached > self._flop_per_s[problem.dtype]

    def rise(self, problem: Problem, measurement: Measurement) -> None:
        """Takes a time as reached: times up to this speed are not above the peak any more."""
        known = self._flop_per_s.get(problem.dtype, 0.0)
        self._flop_per_s[problem.dtype] = max(known, _reached(problem, measurement))


def _reached(problem: Problem, measurement: Measurement) -> float:
    """Returns the flop/s of a measurement, by the slow end of its interval."""
    return problem.flop / measurement.interval_s[1]
