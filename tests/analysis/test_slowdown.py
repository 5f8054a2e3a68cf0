import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trials import measurement
from tuner.analysis.slowdown import slowdown
from tuner.core.records import Measurement
from tuner.runtime.timing import summarize


def timed(samples: list[float]) -> Measurement:
    return summarize(samples, 1, np.random.default_rng(0))


def test_equal_samples_differ_by_nothing() -> None:
    one = timed([1.0, 1.1, 0.9, 1.05])
    found = slowdown(one, one)
    assert (found.median, found.interval) == (0.0, (0.0, 0.0))


def test_what_slows_a_whole_round_down_does_not_count() -> None:
    rounds = [1.0, 2.0, 1.5, 3.0, 1.2, 1.1]
    found = slowdown(timed([2 * each for each in rounds]), timed(rounds))
    assert found.interval == pytest.approx((1.0, 1.0))


def test_unequally_many_samples_are_drawn_apart() -> None:
    found = slowdown(timed([2.0, 2.1, 1.9]), timed([1.0, 1.0, 1.01, 0.99]))
    assert found.median == pytest.approx(1.0)
    assert 0.8 < found.interval[0] < found.interval[1] < 1.2


def test_a_single_sample_gives_an_interval_without_width() -> None:
    assert slowdown(measurement(1.5), measurement(1.0)).interval == (0.5, 0.5)


@given(st.lists(st.floats(0.5, 2.0), min_size=2, max_size=30), st.floats(1.0, 3.0))
def test_the_median_lies_in_the_interval(samples: list[float], scale: float) -> None:
    found = slowdown(timed([scale * each for each in samples]), timed(samples))
    assert found.interval[0] - 1e-9 <= found.median <= found.interval[1] + 1e-9
