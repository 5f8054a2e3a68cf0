"""What may be said of two times: their ratio with its confidence interval, or why no ratio may be printed.

Whatever prints or returns a ratio of measured times asks ``comparison``, ``paired_comparison`` or, for times
of several sessions, ``session_comparison``, and writes it by the properties of ``Comparable``.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tuner.analysis.selected_result import slowdown, timed
from tuner.analysis.slowdown import PairedSlowdown
from tuner.core.problem import Problem
from tuner.core.records import Measurement, MedianInterval
from tuner.core.reliability import Reliability
from tuner.core.round_quality import DRIFT_LIMIT, Evidence, reliability_in_round
from tuner.core.runs import Run
from tuner.core.trials import StoredTrial

ALIGNMENT_LIMIT = 1.05  # ratio of times at two alignments; a smaller one is not reported
NORMAL_95 = 1.96  # quantile of the normal distribution for an interval of 95 percent
WIDTH_LIMIT = DRIFT_LIMIT  # relative, half of the interval: what quiet machines show between parts of a round
Interval = tuple[float, float]


def median_interval(values: Sequence[float]) -> MedianInterval:
    """Returns the median of the values with its 95 % interval by the sign test, from order statistics.

    The interval assumes independent values; for neighbouring rounds on a busy machine it is too narrow.
    """
    ordered = sorted(values)
    count = len(ordered)
    rank = max(0, math.floor(count / 2 - NORMAL_95 * math.sqrt(count) / 2))
    return MedianInterval(statistics.median(ordered), ordered[rank], ordered[count - 1 - rank])


def measurement_of(values: Sequence[float]) -> Measurement:
    """Returns a measurement with one sample, of one call, per round; ``values``: seconds per call.

    Its interval is that of ``median_interval``.
    """
    interval = median_interval(values)
    return Measurement(tuple(values), 1, interval.median, (interval.low, interval.high))


def paired_ratio(numerators: Sequence[float], denominators: Sequence[float]) -> MedianInterval:
    """Returns the median over rounds of the ratio of two times in a round, with its 95 % interval."""
    pairs = zip(numerators, denominators, strict=True)
    return median_interval([numerator / denominator for numerator, denominator in pairs])


@dataclass(frozen=True)
class Comparable:
    """The ratio of two times that were taken interleaved while the machine was quiet, and that differ."""

    ratio: float  # of the times, measured over reference: 1.02 takes 2 % longer
    interval: Interval  # of ``level`` percent; does not contain 1
    noise: float  # A/A noise floor, below the difference
    level: int = 95  # percent

    @property
    def speed(self) -> float:
        """Returns the speed relative to the reference: 0.98 is 98 % of the reference's speed."""
        return 1 / self.ratio

    @property
    def speed_interval(self) -> Interval:
        return 1 / self.interval[1], 1 / self.interval[0]

    @property
    def longer(self) -> float:
        """Returns measured time / reference time - 1: 0.02 is 2 % longer than the reference, -0.02 less."""
        return self.ratio - 1

    @property
    def longer_interval(self) -> Interval:
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
    """Returns a ratio of speeds as a clause: '1.31 times as fast (95 % interval 1.25 .. 1.36)'."""
    return f"{speed.median:.2f} times as fast (95 % interval {speed.low:.2f} .. {speed.high:.2f})"


@dataclass(frozen=True)
class NotComparable:
    """The reason why no ratio of two measured times may be printed, such as too few samples."""

    reason: str  # one clause, to print
    interval: Interval | None = None  # of measured over reference; None: the times are not evidence of one
    is_equal: bool = False  # the times are precise enough, and not distinguishable

    @property
    def speed_interval(self) -> Interval | None:
        if self.interval is None:
            return None
        return (1 / self.interval[1], 1 / self.interval[0])


def comparison(ours: Measurement, reference: Measurement, evidence: Evidence) -> Comparable | NotComparable:
    """Returns the ratio ``ours`` / ``reference`` of the median times with its interval.

    NotComparable with the reason if the times are not reliable, if half the interval exceeds WIDTH_LIMIT
    (0.1) of the ratio, or if the times cannot be distinguished.
    """
    reliability = reliability_in_round((ours, reference), evidence)
    if not reliability.is_reliable:
        return NotComparable(reliability.reason)
    difference = slowdown(ours, reference)
    interval = (1 + difference.interval[0], 1 + difference.interval[1])
    return _ratio_or_reason(1 + difference.median, interval, evidence.noise or 0.0)


def session_comparison(longer: PairedSlowdown, objection: str = "") -> Comparable | NotComparable:
    """Returns the ratio of several sessions' times with its 99 % interval.

    NotComparable with the reason for an ``objection``, if half the interval exceeds WIDTH_LIMIT (0.1) of the
    ratio, or if the ratio cannot be distinguished from 1.
    """
    interval = (1 + longer.interval[0], 1 + longer.interval[1])
    if objection:
        return NotComparable(objection, interval)
    return _ratio_or_reason(1 + longer.median, interval, longer.noise, 99)


def paired_comparison(
    ours_s: Sequence[float], reference_s: Sequence[float], evidence: Evidence
) -> Comparable | NotComparable:
    """Returns the ratio of times taken in pairs, ``ours_s[n]`` and ``reference_s[n]`` in round n.

    The ratio is the median of the rounds' ratios; its interval is widened to contain the ratio of the
    medians. NotComparable with the reason in the cases of ``comparison``.
    """
    times = tuple(map(measurement_of, (ours_s, reference_s)))
    reliability = reliability_in_round(times, evidence)
    if not reliability.is_reliable:
        return NotComparable(reliability.reason)
    median_ratio = paired_ratio(ours_s, reference_s)
    whole = times[0].median_s / times[1].median_s
    interval = (min(median_ratio.low, whole), max(median_ratio.high, whole))
    return _ratio_or_reason(median_ratio.median, interval, evidence.noise or 0.0)


def joint_comparison(processes: Sequence[Comparable | NotComparable]) -> Comparable | NotComparable:
    """Returns the ratio of two times of several processes; its interval covers the interval of each process.

    The ratio is the median of the processes' ratios; for a process whose times are not distinguishable, the
    geometric middle of its interval stands for the ratio. NotComparable with the reason if the times of a
    process are not comparable for another reason (``is_equal`` False), if 1 is in the joint interval, or if
    no process can distinguish the times. The result of a single process is returned as it is.
    """
    if len(processes) == 1:
        return processes[0]
    intervals: list[Interval] = []
    for compared in processes:
        if isinstance(compared, NotComparable) and not compared.is_equal:
            return compared
        assert compared.interval is not None
        intervals.append(compared.interval)
    ends = list(zip(*intervals, strict=True))
    low = min(ends[0])
    high = max(ends[1])
    if low <= 1 <= high:
        text = f"the 95 % interval of the ratio of times over {len(processes)} processes is"
        line = f"not distinguishable, {text} {low:.3f} .. {high:.3f}"
        return NotComparable(line, (low, high), is_equal=True)
    noises = [compared.noise for compared in processes if isinstance(compared, Comparable)]
    if not noises:
        return processes[-1]
    ratio = statistics.median(_ratio_of(compared) for compared in processes)
    return Comparable(ratio, (low, high), max(noises))


def _ratio_of(compared: Comparable | NotComparable) -> float:
    if isinstance(compared, Comparable):
        return compared.ratio
    assert compared.interval is not None
    return math.sqrt(math.prod(compared.interval))


def ratio_document(compared: Comparable | NotComparable) -> dict[str, Any]:
    """Returns the JSON fields of a speed relative to a reference: above 1, the reference takes longer.

    "ratio" is null where no ratio may be printed; "ratio_unknown" is then the reason.
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
    low, high = interval
    text = f"the {level} % interval of the ratio of times is"
    if (high - low) / 2 > WIDTH_LIMIT * ratio:
        return NotComparable(f"unknown, {text} {low:.2f} .. {high:.2f}", interval)
    if low <= 1 <= high:
        line = f"not distinguishable, {text} {low:.3f} .. {high:.3f}"
        return NotComparable(line, interval, is_equal=True)
    if abs(ratio - 1) <= noise:
        text = f"the ratio of times is within {low:.3f} .. {high:.3f}, the noise floor is {noise:.1%}"
        return NotComparable(f"not distinguishable, {text}", interval, is_equal=True)
    return Comparable(ratio, interval, noise, level)


def against_baseline(run: Run, trial: StoredTrial) -> Comparable | NotComparable | None:
    """Returns the ratio of a trial's time to that of its run's baseline; NotComparable with the reason.

    None for a run without a baseline.
    """
    if run.baseline is None:
        return None
    is_interleaved = trial.final is not None and run.baseline.is_interleaved
    evidence = Evidence(is_interleaved, run.noise, run.reliability)
    return comparison(timed(trial), run.baseline.measurement, evidence)


def between_trials(run: Run, ours: StoredTrial, reference: StoredTrial) -> Comparable | NotComparable:
    """Returns the ratio ``ours`` / ``reference`` of two trials' times; NotComparable with the reason.

    ``run``: the run in which they were timed together, if they were.
    """
    return comparison(timed(ours), timed(reference), _evidence(run, ours, reference))


def _evidence(run: Run, *trials: StoredTrial) -> Evidence:
    is_interleaved = all(trial.final is not None and trial.run == run.id for trial in trials)
    return Evidence(is_interleaved, run.noise, run.reliability)


def sensitivity_text(
    measurement: Measurement | None, problem: Problem, noise: float | None, reliability: Reliability
) -> str:
    """Returns a text that says at which alignment a kernel is slower than at its problem's, and by how much.

    "" if it is slower at none, if operands at other offsets were not timed, if the noise is unknown, or if
    the times are not reliable. Slower is more than ALIGNMENT_LIMIT (1.05) times as long, beyond the intervals
    and the noise.
    """
    if measurement is None or noise is None or not reliability.is_reliable:
        return ""
    by_offset = {offset.offset: offset for offset in measurement.offsets}
    own = by_offset.get(problem.offset_bytes)
    if own is None:
        return ""
    slowest = max(by_offset.values(), key=lambda offset: offset.median_s)
    pair_s = (own.median_s, measurement.median_s)  # of the same code at the same alignment
    limit = max(ALIGNMENT_LIMIT, (1 + noise) * max(pair_s) / min(pair_s))
    if slowest.median_s <= limit * own.median_s or slowest.interval_s[0] <= own.interval_s[1]:
        return ""
    where = f"{slowest.offset} bytes past" if slowest.offset else "on"
    ratio = slowest.median_s / own.median_s
    return f"{ratio:.2f} times as long with operands {where} a cache line of 64 bytes"
