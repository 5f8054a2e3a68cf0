"""Rejects times below the roofline: such a time is not the time of the whole product."""

from typing import final

from tuner.core.errors import CandidateError, Stage
from tuner.core.problem import Problem
from tuner.core.record import Measurement
from tuner.runtime.cpu.describe_host import describe_machine
from tuner.runtime.cpu.roofline import flop_per_s
from tuner.runtime.cpu.thread_team import ThreadTeam

SAMPLES = 60  # of 0.15 ms: the best of them is within some percent of the best of many
DOUBTS = 3  # repetitions before a kernel is rejected: a clock may have risen, another load have ended
ERROR = 0.1  # relative, of the peak: changes of clock rates between two measurements stay below


@final
class ProcessorPeak:
    """The highest flop/s by dtype that this processor was seen to reach, measured when first needed."""

    def __init__(self, team: ThreadTeam) -> None:
        """Takes the thread team that kernels run on."""
        self._team = team
        self._machine = describe_machine()
        self._flop_per_s: dict[str, float] = {}  # by dtype

    def require_possible(self, problem: Problem, measurement: Measurement) -> None:
        """Raises CandidateError(VERIFY) for a time that is too short for this processor's peak flop/s.

        Too short means more flop/s than the measured peak and ERROR (10 %). Measures the peak again, up to
        DOUBTS (3) times, before it raises.
        """
        found = problem.flop / measurement.interval_s[1]
        for _ in range(DOUBTS):
            if found <= (1 + ERROR) * self._flop_per_s.get(problem.dtype, 0.0):
                return
            again = flop_per_s(self._team, problem.dtype, self._machine, SAMPLES)
            self._flop_per_s[problem.dtype] = max(again, self._flop_per_s.get(problem.dtype, 0.0))
        limit = (1 + ERROR) * self._flop_per_s[problem.dtype]
        if found > limit:
            raise CandidateError(
                Stage.VERIFY,
                f"faster than this processor: found {found / 1e9:.4g} GFLOP/s, allowed {limit / 1e9:.4g}, "
                f"its peak and {ERROR:.0%}",
            )
