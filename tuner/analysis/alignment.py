"""Whether a CPU kernel is slower where its operands lie otherwise: its sensitivity to alignment."""

from dataclasses import dataclass

from tuner.core.problem import Problem
from tuner.core.record import Measurement, OffsetTime

LIMIT = 1.05  # times its own time; less is not reported


@dataclass(frozen=True)
class Sensitivity:
    """The offset past a cache line, in bytes, at which a kernel is slowest, and by how much."""

    offset: int
    ratio: float  # its time there divided by its time at the offset of its problem's alignment

    @property
    def text(self) -> str:
        """Returns the text for people: 1.31 times as long 32 bytes past a cache line."""
        place = f"{self.offset} bytes past" if self.offset else "on"
        return f"{self.ratio:.2f} times as long with operands {place} a cache line of 64 bytes"


def sensitivity(measurement: Measurement, problem: Problem) -> Sensitivity | None:
    """Returns where a kernel is slower than at the alignment of its problem.

    None where it is not: no other offset takes more than LIMIT times as long with an interval that lies
    above the other one; also None where the offsets were not timed.
    """
    own = next((each for each in measurement.offsets if each.offset == problem.offset_bytes), None)
    if own is None:
        return None
    slowest = max(measurement.offsets, key=lambda each: each.median_s)
    return Sensitivity(slowest.offset, slowest.median_s / own.median_s) if _is_slower(slowest, own) else None


def sensitivity_text(measurement: Measurement | None, problem: Problem) -> str:
    """Returns where a kernel is slower than at the alignment of its problem, for people; "" where it is not.

    "" also where its offsets were not timed, and for None.
    """
    found = None if measurement is None else sensitivity(measurement, problem)
    return "" if found is None else found.text


def _is_slower(one: OffsetTime, own: OffsetTime) -> bool:
    return one.median_s > LIMIT * own.median_s and one.interval_s[0] > own.interval_s[1]
