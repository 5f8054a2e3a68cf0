"""Ratios of interleaved rounds: intervals from order statistics."""

import itertools

from tuner.analysis.ratios import median_interval, paired_ratio
from tuner.core.records import MedianInterval


def test_the_interval_encloses_the_median_of_the_distribution_in_95_of_100_cases() -> None:
    rounds = 15
    enclosed = 0
    for signs in itertools.product((-1.0, 1.0), repeat=rounds):
        found = median_interval(signs)
        enclosed += found.low < 0 < found.high
    assert 0.95 < enclosed / 2**rounds < 0.99


def test_few_values_have_all_of_them_as_their_interval() -> None:
    assert median_interval([3.0, 1.0, 2.0]) == MedianInterval(2.0, 1.0, 3.0)
    assert median_interval([5.0]) == MedianInterval(5.0, 5.0, 5.0)


def test_a_ratio_compares_the_same_rounds() -> None:
    busy = [1.0, 10.0, 100.0]  # the machine slows down: the ratio does not change
    assert paired_ratio([2 * each for each in busy], busy) == MedianInterval(2.0, 2.0, 2.0)
