"""The ratio of two times with its confidence interval, or the reason why no ratio may be printed."""

from dataclasses import dataclass

from tuner.analysis.reliability import DRIFT_LIMIT, NO_NOISE_FLOOR, NOISE_LIMIT
from tuner.analysis.slowdown import slowdown
from tuner.core.record import Measurement

LEAST_SAMPLES = 6  # the range of 6 samples contains the median with 1 - 2 (1/2)^6 = 97 %, of 5 with 94 %
WIDTH_LIMIT = DRIFT_LIMIT  # relative, half of the interval: what quiet machines show between parts of a round


@dataclass(frozen=True)
class Evidence:
    """How two measurements were taken: whether interleaved, with which noise, and why unreliable, if so."""

    is_interleaved: bool  # sample by sample, in one round
    noise: float | None  # A/A noise floor of that round, relative; None: not known
    unreliable: str = ""  # why the round's times cannot be relied on; "" where they can


@dataclass(frozen=True)
class Comparable:
    """The ratio of two times that were taken interleaved while the machine was quiet."""

    ratio: float  # of the medians, measured over reference: 1.02 takes 2 % longer
    interval: tuple[float, float]  # 95 %, by the bootstrap
    noise: float  # A/A noise floor: relative differences below it mean nothing

    @property
    def speed(self) -> float:
        """Returns the speed relative to the reference: 0.98 is 98 % of the reference's speed."""
        return 1 / self.ratio

    @property
    def speed_interval(self) -> tuple[float, float]:
        """Returns the 95 % confidence interval of ``speed`` as (low, high)."""
        return 1 / self.interval[1], 1 / self.interval[0]

    @property
    def longer(self) -> float:
        """Returns the relative difference of the times: 0.02 takes 2 % longer, -0.02 takes 2 % less."""
        return self.ratio - 1

    @property
    def longer_interval(self) -> tuple[float, float]:
        """Returns the 95 % confidence interval of ``longer`` as (low, high)."""
        return self.interval[0] - 1, self.interval[1] - 1

    @property
    def is_different(self) -> bool:
        """True if the 95 % interval excludes equal times and the difference is above the noise floor."""
        low, high = self.longer_interval
        return (low > 0 or high < 0) and abs(self.longer) > self.noise


@dataclass(frozen=True)
class NotComparable:
    """The reason why no ratio of two measured times may be printed, such as too few samples."""

    reason: str  # one clause, to print


def comparison(ours: Measurement, reference: Measurement, evidence: Evidence) -> Comparable | NotComparable:
    """Returns the ratio ``ours`` / ``reference`` of the median times with its interval, or why there is none.

    There is none if ``objection`` has a reason (unreliable, early-stopped, not interleaved, too few samples,
    noise floor unknown or too high), or if half the interval is more than WIDTH_LIMIT (0.1) times the ratio.
    """
    reason = objection((ours, reference), evidence)
    if reason:
        return NotComparable(reason)
    found = slowdown(ours, reference)
    interval = (1 + found.interval[0], 1 + found.interval[1])
    compared = Comparable(1 + found.median, interval, evidence.noise or 0.0)
    low, high = compared.interval
    if (high - low) / 2 > WIDTH_LIMIT * compared.ratio:
        return NotComparable(f"the 95 % interval of the ratio of times is {low:.2f} .. {high:.2f}")
    return compared


def objection(times: tuple[Measurement, ...], evidence: Evidence) -> str:
    """Returns why no ratio of these measurements may be printed, whatever its value; '' if one may be.

    Reasons: unreliable times, an early-stopped measurement, not interleaved, fewer than LEAST_SAMPLES (6)
    samples, a noise floor that is unknown or above NOISE_LIMIT (5 %). ``times`` has one or more measurements.
    """
    if evidence.unreliable:
        return evidence.unreliable
    if not all(each.is_complete for each in times):
        return "a measurement was stopped early"
    if not evidence.is_interleaved:
        return "not timed interleaved in one round"
    fewest = min(len(each.samples_s) for each in times)
    if fewest < LEAST_SAMPLES:
        return f"found {fewest} samples, {LEAST_SAMPLES} are needed"
    if evidence.noise is None:
        return NO_NOISE_FLOOR
    if evidence.noise > NOISE_LIMIT:
        return f"two timings of the same code differ by {evidence.noise:.0%}"
    return ""
