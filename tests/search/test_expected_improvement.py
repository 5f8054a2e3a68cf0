import math

import numpy as np
import pytest

from tuner.search.surrogates import log_expected_improvement


@pytest.mark.parametrize(("mean", "deviation"), [(0.0, 1.0), (1.0, 0.5), (-1.0, 2.0), (2.0, 1.0)])
def test_it_is_the_mean_gain_of_normal_values(mean: float, deviation: float) -> None:
    drawn = np.random.default_rng(0).normal(mean, deviation, 400_000)
    gain = float(np.maximum(0.2 - drawn, 0).mean())
    given = log_expected_improvement(np.array([mean], np.float32), np.array([deviation], np.float32), 0.2)
    assert math.exp(given[0]) == pytest.approx(gain, rel=0.03)


def test_a_lower_mean_or_a_larger_deviation_gains_more() -> None:
    mean, deviation = np.array([0, 1, 1], np.float32), np.array([1, 1, 2], np.float32)
    gain = log_expected_improvement(mean, deviation, 0.0)
    assert gain[0] > gain[1] < gain[2]


def test_no_chance_is_a_number() -> None:
    gain = log_expected_improvement(np.array([50], np.float32), np.array([1e-3], np.float32), 0.0)
    assert np.isfinite(gain).all()
