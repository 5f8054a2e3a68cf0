"""What came of a tuned program, as it is stored."""

from tuner.analysis.comparison import Comparable, NotComparable
from tuner.core.median_interval import MedianInterval
from tuner.core.program_result import ProgramResult
from tuner.core.reliability import NOT_RECORDED, Reliability
from tuner.programs.request import ProgramReport
from tuner.programs.tuning import TunedProgram


def program_result(tuned: TunedProgram) -> ProgramResult:
    """Returns the times, groups and baselines of a tuned program of groups."""
    gain = tuned.gain
    speed = MedianInterval(gain.speed, *gain.speed_interval) if isinstance(gain, Comparable) else None
    return ProgramResult(
        _call_s(tuned.report),
        _call_s(tuned.plain),
        speed,
        tuned.groups,
        tuned.left_out,
        tuned.baselines,
        _reliability(tuned.report),
        gain.reason if isinstance(gain, NotComparable) else "",
    )


def _reliability(report: ProgramReport | None) -> Reliability:
    return NOT_RECORDED if report is None or report.times is None else report.times.reliability


def _call_s(report: ProgramReport | None) -> float | None:
    return None if report is None or report.times is None else report.times.call_s
