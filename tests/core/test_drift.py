import pytest

from tuner.core.drift import drift


def test_drift_is_the_largest_difference_between_parts() -> None:
    assert drift((1.0,) * 6 + (1.5,) * 6) == pytest.approx(0.5)
    assert drift((1.0, 1.0, 9.0) * 4) == 0.0  # what hits each part alike is no drift


@pytest.mark.parametrize("samples", [(1.0,), (1.0, 2.0, 3.0, 4.0, 5.0)])
def test_of_too_few_samples_no_drift_is_told(samples: tuple[float, ...]) -> None:
    assert drift(samples) == 0.0
