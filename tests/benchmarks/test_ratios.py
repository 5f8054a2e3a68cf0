"""The interval of a ratio is the one that its rounds allow; means leave out what was disturbed."""

import itertools
import statistics

import pytest

from benchmarks.paired_timing import ROUNDS
from benchmarks.ratios import Ratio, RatioPair, coverage, had_one_processor, mean_of_pairs

LARGE, SKINNY = "1024x1024x1024", "16x4096x4096"


def ratio(shape: str, value: float, gflop_per_s: float = 100.0) -> Ratio:
    return Ratio(
        shape, value, value - 0.1, value + 0.1, ROUNDS, gflop_per_s, gflop_per_s / value, "library 1.0"
    )


def test_quartiles_of_the_rounds_are_order_statistics() -> None:
    low, _, high = statistics.quantiles(range(1, ROUNDS + 1), n=4)
    assert (low, high) == ((ROUNDS + 1) / 4, ROUNDS + 1 - (ROUNDS + 1) / 4)


@pytest.mark.parametrize("rounds", [3, 7, 11])
def test_coverage_is_the_share_of_all_outcomes_that_enclose_the_median(rounds: int) -> None:
    """Each of the values lies above the median of the distribution or below it, both equally likely."""
    enclosed = 0
    for above in itertools.product((-1.0, 1.0), repeat=rounds):
        low, _, high = statistics.quantiles(above, n=4)
        enclosed += low < 0 < high
    assert coverage(rounds) == pytest.approx(enclosed / 2**rounds)


def test_fifteen_rounds_give_more_than_95_percent() -> None:
    assert 0.96 < coverage(ROUNDS) < 0.97


def test_large_means_that_no_size_is_small() -> None:
    assert ratio("1003x701x331", 1.0).is_large
    assert not ratio("128x4096x1024", 1.0).is_large


@pytest.mark.parametrize(
    ("shape", "two_threads", "is_disturbed"),
    [(LARGE, 101.0, True), (LARGE, 190.0, False), (SKINNY, 101.0, False)],  # memory limits skinny ones
)
def test_two_threads_as_slow_as_one_had_one_processor(
    shape: str, two_threads: float, is_disturbed: bool
) -> None:
    assert had_one_processor(ratio(shape, 1.0), ratio(shape, 1.0, two_threads)) == is_disturbed


def test_a_disturbed_ratio_is_left_out_of_the_mean() -> None:
    quiet = RatioPair(ratio(LARGE, 2.0), ratio(LARGE, 2.0, 190.0))
    disturbed = RatioPair(ratio(LARGE, 8.0), ratio(LARGE, 100.0, 101.0))
    assert mean_of_pairs([quiet, disturbed]) == pytest.approx((4.0, 2.0))
