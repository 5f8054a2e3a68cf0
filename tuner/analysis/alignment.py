"""Whether a CPU kernel is slower where its operands lie otherwise: its sensitivity to alignment."""

from tuner.core.problem import Problem
from tuner.core.record import Measurement

LIMIT = 1.05  # times its own time; less is not reported


def sensitivity_text(
    measurement: Measurement | None, problem: Problem, noise: float | None, distrusted: str
) -> str:
    """Returns where a kernel is slower than at the alignment of its problem, and by how much; "" if nowhere.

    It is slower where it takes more than LIMIT (1.05) times as long as at the alignment of its problem, with
    an interval that lies above the other one, and by more than the noise: of the run (``noise``), and that of
    the two timings at the own alignment, by offset and by round. "" also where its offsets were not timed,
    where the noise is not known, for times that are ``distrusted`` for a reason, and for None.
    """
    if measurement is None or noise is None or distrusted:
        return ""
    by_offset = {each.offset: each for each in measurement.offsets}
    own = by_offset.get(problem.offset_bytes)
    if own is None:
        return ""
    slowest = max(by_offset.values(), key=lambda each: each.median_s)
    pair_s = (own.median_s, measurement.median_s)  # of the same code at the same alignment
    limit = max(LIMIT, (1 + noise) * max(pair_s) / min(pair_s))
    if slowest.median_s <= limit * own.median_s or slowest.interval_s[0] <= own.interval_s[1]:
        return ""
    place = f"{slowest.offset} bytes past" if slowest.offset else "on"
    ratio = slowest.median_s / own.median_s
    return f"{ratio:.2f} times as long with operands {place} a cache line of 64 bytes"
