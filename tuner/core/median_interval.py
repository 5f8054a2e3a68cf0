"""The median of some numbers with its interval."""

from dataclasses import dataclass


@dataclass(frozen=True)
class MedianInterval:
    """The median of some numbers, and an interval of 95 percent of it."""

    median: float
    low: float
    high: float
