import numpy as np
import pytest

from tests.search.tasks import grid, task
from tuner.search.gaussian_process import JITTER, Widths, _loss, correlation, fit


def squares_and_values() -> tuple[np.ndarray, np.ndarray]:
    square = task(grid("ab", 7))
    rows = np.random.default_rng(3).permutation(49)[:30]
    table = square.table.part(rows)
    values = np.cos(table.codes[:, 0] / 2.0)  # b does not matter
    return table.squares(), (values - values.mean()) / values.std()


def test_correlation_falls_from_one_to_zero() -> None:
    values = correlation(np.array([0, 0.1, 1, 100], np.float32))
    assert values[0] == 1
    assert (np.diff(values) < 0).all()
    assert 0 <= values[-1] < 1e-9
    assert values.dtype == np.float32


def test_a_knob_that_matters_gets_the_larger_weight() -> None:
    widths = fit(*squares_and_values())
    assert widths.weights[0] > 5 * widths.weights[1]
    assert JITTER < widths.noise < 0.02


def test_values_without_a_pattern_are_noise() -> None:
    squares, values = squares_and_values()
    mixed = np.random.default_rng(1).normal(size=len(values))
    assert fit(squares, mixed).noise > 2 * fit(squares, values).noise


def test_the_slope_is_that_of_the_loss() -> None:
    squares, values = squares_and_values()
    at = np.array([0.3, -0.4, -2.0])
    _, slope = _loss(squares, values, at)
    for place in range(3):
        off = np.eye(3)[place] * 1e-5
        difference = (_loss(squares, values, at + off)[0] - _loss(squares, values, at - off)[0]) / 2e-5
        assert slope[place] == pytest.approx(difference, rel=1e-4, abs=1e-6)


def test_a_row_without_knobs_is_fitted() -> None:
    widths = fit(np.zeros((0, 1, 1)), np.zeros(1))
    assert isinstance(widths, Widths)
    assert len(widths.weights) == 0
