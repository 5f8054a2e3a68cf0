"""What may be said of two times: their ratio with its confidence interval, or the reason why there is none.

Whatever prints or returns a ratio of measured times asks ``comparison``, ``paired_comparison`` or, for times
of several sessions, ``session_comparison``, and writes it by the properties of ``Comparable``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tuner.analysis.paired_ratio import measurement_of, paired_ratio
from tuner.analysis.paired_slowdown import PairedSlowdown
from tuner.analysis.slowdown import slowdown
from tuner.core.median_interval import MedianInterval
from tuner.core.record import Measurement
from tuner.core.round_quality import DRIFT_LIMIT, Evidence, objection

WIDTH_LIMIT = DRIFT_LIMIT  # relative, half of the interval: what quiet machines show between parts of a round
Interval = tuple[float, float]


@dataclass(frozen=True)
class Comparable:
    """The ratio of two times that were taken interleaved while the machine was quiet, and that differ."""

    ratio: float  # of the medians, measured over reference: 1.02 takes 2 % longer
    interval: Interval  # of ``level`` percent, by the bootstrap; does not contain 1
    noise: float  # A/A noise floor, below the difference
    level: int = 95  # percent

    @property
    def speed(self) -> float:
        """Returns the speed relative to the reference: 0.98 is 98 % of the reference's speed."""
        return 1 / self.ratio

    @property
    def speed_interval(self) -> Interval:
        """Returns the confidence interval of ``speed`` as (low, high)."""
        return 1 / self.interval[1], 1 / self.interval[0]

    @property
    def longer(self) -> float:
        """Returns the relative difference of the times: 0.02 takes 2 % longer, -0.02 takes 2 % less."""
        return self.ratio - 1

    @property
    def longer_interval(self) -> Interval:
        """Returns the confidence interval of ``longer`` as (low, high)."""
        return self.interval[0] - 1, self.interval[1] - 1

    @property
    def percent_text(self) -> str:
        """Returns the speed in percent of the reference's: '98.0%'."""
        return f"{self.speed:.1%}"

    @property
    def times_text(self) -> str:
        """Returns the speed relative to the reference's with its interval: '1.09x (1.05 .. 1.13)'."""
        low, high = self.speed_interval
        return f"{self.speed:.2f}x ({low:.2f} .. {high:.2f})"

    @property
    def faster_text(self) -> str:
        """Returns the speed as a clause: '1.31 times as fast (95 % interval 1.25 .. 1.36)'."""
        return faster_text(MedianInterval(self.speed, *self.speed_interval))

    @property
    def longer_percent_text(self) -> str:
        """Returns the relative difference without its interval: '+3.0%'."""
        return f"{self.longer:+.1%}"

    @property
    def longer_text(self) -> str:
        """Returns the relative difference with its interval: '+3.0% time (95 % interval +2.0% .. +4.0%)'."""
        low, high = self.longer_interval
        return f"{self.longer:+.1%} time ({self.level} % interval {low:+.1%} .. {high:+.1%})"

    @property
    def ratio_text(self) -> str:
        """Returns the ratio of the times with its interval: '1.030 (95 % interval 1.020 .. 1.040)'."""
        low, high = self.interval
        return f"{self.ratio:.3f} ({self.level} % interval {low:.3f} .. {high:.3f})"


def faster_text(speed: MedianInterval) -> str:
    """Returns a stored ratio of speeds: '1.31 times as fast (95 % interval 1.25 .. 1.36)'."""
    return f"{speed.median:.2f} times as fast (95 % interval {speed.low:.2f} .. {speed.high:.2f})"


@dataclass(frozen=True)
class NotComparable:
    """The reason why no ratio of two measured times may be printed, such as too few samples."""

    reason: str  # one clause, to print
    interval: Interval | None = None  # of measured over reference; None: the times are no evidence of one
    is_equal: bool = False  # the times are precise enough, and not distinguishable

    @property
    def speed_interval(self) -> Interval | None:
        """Returns the interval of the speed relative to the reference; None where there is none."""
        return None if self.interval is None else (1 / self.interval[1], 1 / self.interval[0])


def comparison(ours: Measurement, reference: Measurement, evidence: Evidence) -> Comparable | NotComparable:
    """Returns the ratio ``ours`` / ``reference`` of the median times with its interval, or why there is none.

    There is none if ``objection`` has a reason (unreliable, early-stopped, not interleaved, too few samples,
    noise floor unknown or too high), if half the interval is more than WIDTH_LIMIT (0.1) times the ratio, and
    if the times are not distinguishable: the interval contains 1, or the difference is within the noise.
    """
    reason = objection((ours, reference), evidence)
    if reason:
        return NotComparable(reason)
    found = slowdown(ours, reference)
    interval = (1 + found.interval[0], 1 + found.interval[1])
    return _ratio_or_reason(1 + found.median, interval, evidence.noise or 0.0)


def session_comparison(found: PairedSlowdown, objection: str = "") -> Comparable | NotComparable:
    """Returns what ``comparison`` does, of codes that were timed interleaved in several sessions.

    The interval is that of 99 %. ``objection``: why the sessions are no evidence of a ratio; "" where they
    are.
    """
    interval = (1 + found.interval[0], 1 + found.interval[1])
    if objection:
        return NotComparable(objection, interval)
    return _ratio_or_reason(1 + found.median, interval, found.noise, 99)


def paired_comparison(
    ours_s: Sequence[float], reference_s: Sequence[float], evidence: Evidence
) -> Comparable | NotComparable:
    """Returns what ``comparison`` does, of times whose n-th ones are of the same round: of a pair of slices.

    The ratio is the median of the rounds' ratios. Where the ratio of the medians is not in its interval, the
    rounds disagree with one another, and there is no ratio.
    """
    times = tuple(measurement_of(each) for each in (ours_s, reference_s))
    reason = objection(times, evidence)
    if reason:
        return NotComparable(reason)
    found, whole = paired_ratio(ours_s, reference_s), times[0].median_s / times[1].median_s
    interval = (min(found.low, whole), max(found.high, whole))
    return _ratio_or_reason(found.median, interval, evidence.noise or 0.0)


def ratio_document(compared: Comparable | NotComparable) -> dict[str, Any]:
    """Returns the JSON fields of a speed relative to a reference: above 1, the reference takes longer.

    ``ratio`` is null where no ratio may be printed, and ``ratio_unknown`` is then the reason;
    ``ratio_interval`` is there also for times that are not distinguishable.
    """
    interval = compared.speed_interval
    return {
        "ratio": compared.speed if isinstance(compared, Comparable) else None,
        "ratio_interval": None if interval is None else list(interval),
        "ratio_unknown": compared.reason if isinstance(compared, NotComparable) else None,
    }


def _ratio_or_reason(
    ratio: float, interval: Interval, noise: float, level: int = 95
) -> Comparable | NotComparable:
    """Returns the ratio, or why it is none: a wide interval, or times not distinguishable."""
    low, high = interval
    text = f"the {level} % interval of the ratio of times is {low:.2f} .. {high:.2f}"
    if (high - low) / 2 > WIDTH_LIMIT * ratio:
        return NotComparable(f"unknown, {text}", interval)
    if low <= 1 <= high:
        text = f"the {level} % interval of the ratio of times is {low:.3f} .. {high:.3f}"
        return NotComparable(f"not distinguishable, {text}", interval, is_equal=True)
    if abs(ratio - 1) <= noise:
        text = f"the ratio of times is within {low:.3f} .. {high:.3f}, the noise floor is {noise:.1%}"
        return NotComparable(f"not distinguishable, {text}", interval, is_equal=True)
    return Comparable(ratio, interval, noise, level)
