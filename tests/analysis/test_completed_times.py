import numpy as np
import pytest

from tests.analysis.matrices import matrix_of
from tuner.analysis.time_matrix import completed_times

ALL = [[True, True], [True, True]]


def test_measured_times_stay_and_missing_ones_are_marked() -> None:
    matrix = matrix_of([[1.0, 3.0], [2.0, None]], costs=[[1.0, 1.0], [1.0, 1.0]], applies=ALL)
    found = completed_times(matrix)
    assert found.is_predicted.tolist() == [[False, False], [False, True]]
    assert found.logs[~found.is_predicted] == pytest.approx(np.log([1.0, 3.0, 2.0]))


def test_a_prediction_is_the_model_at_the_level_of_the_problem_corrected_by_neighbours() -> None:
    matrix = matrix_of([[1.0, 3.0], [2.0, None]], costs=[[1.0, 1.0], [1.0, 1.0]], applies=ALL)
    log_s = completed_times(matrix).logs[1, 1]
    assert np.log(2.0) < log_s < np.log(6.0)  # the model says equal, the neighbour three times as long


def test_a_problem_without_any_time_has_the_level_of_the_others() -> None:
    matrix = matrix_of([[1.0, 3.0], [None, None]], costs=[[1.0, 1.0], [1.0, 1.0]], applies=ALL)
    logs = completed_times(matrix).logs[1]
    assert logs[0] < np.log(3) / 2 < logs[1]
    assert np.isfinite(logs).all()
