"""No kernel is faster than the GPU: a time below the roofline is not the time of the whole product."""

from tuner.core.errors import CandidateError, Stage, TunerError
from tuner.core.problem import Problem
from tuner.core.record import Measurement
from tuner.runtime.cuda.facts import CudaFacts
from tuner.runtime.cuda.roofline import documented_flop_per_s

ERROR = 0.1  # relative, of the peak at the highest clock: of events and of clocks that a driver tells


def require_possible(problem: Problem, measurement: Measurement, facts: CudaFacts) -> None:
    """Raises CandidateError(VERIFY) for more flop per second than are documented of the chip, if any are."""
    try:
        peak = documented_flop_per_s(facts, problem.dtype)
    except TunerError:
        return
    found = problem.flop / measurement.interval_s[1]
    limit = (1 + ERROR) * peak
    if found > limit:
        raise CandidateError(
            Stage.VERIFY,
            f"faster than {facts.name}: found {found / 1e12:.4g} TFLOP/s, allowed {limit / 1e12:.4g}, "
            f"its documented peak and {ERROR:.0%}",
        )
