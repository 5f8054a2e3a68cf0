import pytest

from tuner.core.errors import CandidateError, Stage
from tuner.core.problem import Matmul
from tuner.core.record import Measurement
from tuner.runtime.cpu.thread_team import ThreadTeam
from tuner.targets.cpu.processor_peak import ProcessorPeak

pytestmark = pytest.mark.mlir

PROBLEM = Matmul(64, 64, 64)


def measured(flop_per_s: float) -> Measurement:
    time_s = PROBLEM.flop / flop_per_s
    return Measurement((time_s,), 1, time_s, (time_s, time_s))


@pytest.fixture(scope="module")
def peak() -> ProcessorPeak:
    return ProcessorPeak(ThreadTeam(1))


def test_a_time_that_no_processor_reaches_is_refused_with_the_figures(peak: ProcessorPeak) -> None:
    reason = r"^faster than this processor: found 1e\+06 GFLOP/s, allowed [\d.]+, its peak and 10%$"
    with pytest.raises(CandidateError, match=reason) as caught:
        peak.require_possible(PROBLEM, measured(1e15))
    assert caught.value.stage == Stage.VERIFY


def test_a_usual_time_is_possible(peak: ProcessorPeak) -> None:
    peak.require_possible(PROBLEM, measured(1e9))


def test_the_slow_end_of_the_interval_counts(peak: ProcessorPeak) -> None:
    fast_s, slow_s = PROBLEM.flop / 1e15, PROBLEM.flop / 1e9
    peak.require_possible(PROBLEM, Measurement((fast_s, slow_s), 1, fast_s, (fast_s, slow_s)))
