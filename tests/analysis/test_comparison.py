from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.analysis.ratios import Comparable, NotComparable, comparison, paired_comparison
from tuner.core.records import Measurement
from tuner.core.round_quality import LEAST_SAMPLES, Evidence
from tuner.runtime.timing import summarize

QUIET = Evidence(is_interleaved=True, noise=0.01)
STEADY = tuple(1e-3 * (1 + 0.001 * step) for step in range(15))


def timed(*samples_s: float) -> Measurement:
    return summarize(list(samples_s), 1, np.random.default_rng(0))


def slower(by: float) -> Measurement:
    return timed(*((1 + by) * each for each in STEADY))


def test_quiet_times_taken_together_have_a_ratio_and_its_interval() -> None:
    found = comparison(slower(0.25), timed(*STEADY), QUIET)
    assert isinstance(found, Comparable)
    assert found.ratio == pytest.approx(1.25)
    assert found.interval == pytest.approx((1.25, 1.25))
    assert found.speed == pytest.approx(0.8)
    assert found.longer == pytest.approx(0.25)
    assert found.speed_interval == pytest.approx((0.8, 0.8))


@pytest.mark.parametrize(
    ("evidence", "options"),
    [
        (
            replace(QUIET, unreliable="the reference kernel drifted by 40%: load"),
            "reference kernel drifted by 40%",
        ),
        (replace(QUIET, is_interleaved=False), "not timed interleaved in one round"),
        (replace(QUIET, noise=None), "noise floor is not known"),
        (replace(QUIET, noise=1.22), "two timings of the same code differ by 122%"),
    ],
)
def test_without_evidence_of_quiet_there_is_a_reason_and_no_ratio(evidence: Evidence, options: str) -> None:
    found = comparison(slower(0.5), timed(*STEADY), evidence)
    assert isinstance(found, NotComparable)
    assert options in found.reason


@pytest.mark.parametrize("is_first", [True, False])
def test_early_stopped_and_few_samples_are_no_basis(is_first: bool) -> None:
    whole = timed(*STEADY)
    for poor, options in (
        (replace(whole, is_complete=False), "stopped early"),
        (
            timed(*STEADY[: LEAST_SAMPLES - 1]),
            f"found {LEAST_SAMPLES - 1} samples, {LEAST_SAMPLES} are needed",
        ),
    ):
        found = comparison(*((poor, whole) if is_first else (whole, poor)), QUIET)
        assert isinstance(found, NotComparable)
        assert options in found.reason


def test_a_wide_interval_is_reported_in_place_of_the_ratio() -> None:
    bimodal = timed(*(1e-3, 3e-3) * 10)
    found = comparison(bimodal, timed(*(1e-3,) * 20), QUIET)
    assert isinstance(found, NotComparable)
    assert "95 % interval of the ratio of times is 1.00 .. 3.00" in found.reason


def test_a_difference_within_the_noise_is_none() -> None:
    within = comparison(slower(0.009), timed(*STEADY), QUIET)
    assert isinstance(within, NotComparable)
    assert within.reason == (
        "not distinguishable, the ratio of times is within 1.009 .. 1.009, the noise floor is 1.0%"
    )
    assert within.is_equal
    assert isinstance(comparison(slower(-0.011), timed(*STEADY), QUIET), Comparable)


def test_a_difference_whose_interval_contains_none_is_none() -> None:
    shuffled = timed(*STEADY[1::2], *STEADY[::2])
    found = comparison(shuffled, timed(*STEADY), replace(QUIET, noise=0.0))
    assert isinstance(found, NotComparable)
    assert "not distinguishable, the 95 % interval of the ratio of times is 0.99" in found.reason
    assert found.is_equal


def test_times_of_pairs_of_slices_have_the_median_of_their_ratios() -> None:
    found = paired_comparison([2e-3] * 40, [1e-3] * 40, QUIET)
    assert isinstance(found, Comparable)
    assert (found.ratio, found.interval) == (2.0, (2.0, 2.0))
    assert found.faster_text == "0.50 times as fast (95 % interval 0.50 .. 0.50)"


def test_pairs_that_disagree_with_their_medians_have_no_ratio() -> None:
    """A time that is sometimes 16 times as long: the ratio of the medians is none of the pairs' ratios."""
    ours, theirs = [1e-3, 1e-3, 16e-3] * 20, [2e-3, 2e-3, 2e-3] * 20
    assert isinstance(paired_comparison(ours[::-1], theirs, QUIET), Comparable)
    drifting = [1e-3 * (1 + place / 10) for place in range(40)]
    found = paired_comparison(drifting, drifting[::-1], QUIET)
    assert isinstance(found, NotComparable)
    assert found.interval is not None
    found = paired_comparison([1e-3] * 40, [2e-3] * 40, replace(QUIET, unreliable="load"))
    assert found == NotComparable("load")


SAMPLES = st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=20).map(lambda samples: timed(*samples))


@given(SAMPLES, SAMPLES, st.booleans(), st.none() | st.floats(0.0, 2.0), st.sampled_from(("", "load")))
def test_a_ratio_is_reported_only_with_all_the_evidence(
    ours: Measurement, reference: Measurement, is_interleaved: bool, noise: float | None, unreliable: str
) -> None:
    found = comparison(ours, reference, Evidence(is_interleaved, noise, unreliable))
    if isinstance(found, Comparable):
        assert is_interleaved
        assert noise is not None
        assert noise <= 0.05
        assert not unreliable
        assert min(len(ours.samples_s), len(reference.samples_s)) >= LEAST_SAMPLES
        assert found.interval[0] <= found.ratio * (1 + 1e-9)
        assert found.ratio <= found.interval[1] * (1 + 1e-9)
        assert not found.interval[0] <= 1 <= found.interval[1]
    else:
        assert found.reason
