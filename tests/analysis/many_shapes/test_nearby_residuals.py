import numpy as np
import pytest

from tests.analysis.many_shapes.matrices import matrix_of
from tuner.analysis.many_shapes.nearby_residuals import PRIOR, nearby_mean, residuals


def test_a_residual_is_what_the_model_gets_wrong_relative_to_the_problem() -> None:
    matrix = matrix_of([[2.0, 2.0], [3.0, None]], costs=[[10.0, 20.0], [10.0, float("inf")]])
    half = np.log(2.0) / 2
    assert residuals(matrix)[0] == pytest.approx([half, -half])
    assert residuals(matrix)[1, 0] == pytest.approx(0.0)
    assert np.isnan(residuals(matrix)[1, 1])


def test_nearer_problems_weigh_more_and_none_pulls_to_the_model() -> None:
    table = np.array([[1.0, np.nan], [-1.0, np.nan]])
    octaves = np.array([[4.0, 4.0, 4.0], [9.0, 4.0, 4.0]])
    mean = nearby_mean(table, octaves, np.array([4.0, 4.0, 4.0]), width=1.0)
    assert mean[0] == pytest.approx(1 / (1 + PRIOR), abs=1e-4)
    assert mean[1] == 0.0
