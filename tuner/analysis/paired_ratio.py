"""Medians and ratios of times of interleaved rounds, with intervals from order statistics."""

import math
import statistics
from collections.abc import Sequence

from tuner.core.median_interval import MedianInterval
from tuner.core.record import Measurement

NORMAL_95 = 1.96  # quantile of the normal distribution for an interval of 95 percent


def median_interval(values: Sequence[float]) -> MedianInterval:
    """Returns the median of the values with the interval of the sign test, from order statistics.

    It assumes no distribution, but independent values: neighbouring rounds of a busy machine are not, so that
    the interval is rather too narrow.
    """
    ordered = sorted(values)
    count = len(ordered)
    rank = max(0, math.floor(count / 2 - NORMAL_95 * math.sqrt(count) / 2))
    return MedianInterval(statistics.median(ordered), ordered[rank], ordered[count - 1 - rank])


def measurement_of(values: Sequence[float]) -> Measurement:
    """Returns seconds of calls, one per round, as a measurement with the interval of ``median_interval``."""
    found = median_interval(values)
    return Measurement(tuple(values), 1, found.median, (found.low, found.high))


def paired_ratio(theirs: Sequence[float], ours: Sequence[float]) -> MedianInterval:
    """Returns the ratio of times of the same rounds: above 1, ``ours`` are shorter."""
    return median_interval([slow / fast for slow, fast in zip(theirs, ours, strict=True)])
