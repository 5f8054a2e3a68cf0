from dataclasses import replace

import numpy as np
import pytest

from tests.analysis.matrices import matrix_of
from tuner.analysis.time_matrix import (
    SHRINKAGE,
    WIDTH,
    KnownTimes,
    Numbers,
    TimeMatrix,
    completed_times,
    corrected_scores,
    filled_costs,
)
from tuner.core.candidate import Candidate
from tuner.core.problem import Matmul

COLUMNS = tuple(Candidate.of("s", {"tile_m": tile}) for tile in (2, 4))


MATRIX = TimeMatrix(
    problems=(Matmul(64, 32, 16), Matmul(1, 32, 16)),
    counts=(1, 3),
    columns=COLUMNS,
    times_s=((2e-6, 1e-6), (4e-6, None)),
    applies=((True, True), (True, False)),
    costs=((20.0, 10.0), (30.0, float("inf"))),
)


def test_times_are_seconds_and_nan_where_there_is_none() -> None:
    assert np.array_equal(MATRIX.times(), [[2e-6, 1e-6], [4e-6, np.nan]], equal_nan=True)
    assert MATRIX.is_timed().tolist() == [[True, True], [True, False]]
    assert MATRIX.is_applicable().tolist() == [[True, True], [True, False]]
    assert MATRIX.model_costs()[1, 1] == np.inf
    assert MATRIX.log_sizes().tolist() == [[6, 5, 4], [0, 5, 4]]


def test_efficiency_is_relative_to_the_best_time_of_the_problem() -> None:
    assert MATRIX.best_s().tolist() == [1e-6, 4e-6]
    assert np.array_equal(MATRIX.efficiency(), [[0.5, 1.0], [1.0, np.nan]], equal_nan=True)


def test_a_problem_without_a_time_has_no_best() -> None:
    untimed = replace(MATRIX, times_s=((None, None), (4e-6, None)))
    assert np.isnan(untimed.best_s()[0])
    assert np.isnan(untimed.efficiency()[0]).all()


def test_a_matrix_without_problems_is_empty() -> None:
    assert TimeMatrix((), (), COLUMNS, (), (), ()).times().shape == (0, 2)
    assert TimeMatrix((), (), COLUMNS, (), (), ()).best_s().shape == (0,)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"problems": (Matmul(64, 32, 16),) * 2}, "a problem or a column twice"),
        ({"columns": (COLUMNS[0],) * 2}, "a problem or a column twice"),
        ({"counts": (1,)}, "counts: found"),
        ({"counts": (1, 0)}, "counts: found"),
        ({"times_s": ((1e-6,), (1e-6,))}, "times_s: found another size, allowed 2 rows of 2"),
        ({"applies": ((True, True),)}, "applies: found another size"),
        ({"costs": ()}, "costs: found another size"),
        ({"times_s": ((0.0, 1e-6), (1e-6, None))}, "not a positive number of seconds"),
        ({"times_s": ((float("inf"), 1e-6), (1e-6, None))}, "not a positive number of seconds"),
        ({"costs": ((0.0, 1.0), (1.0, 1.0))}, "a cost that is not positive"),
        ({"times_s": ((1e-6, 1e-6), (1e-6, 1e-6))}, "a configuration that does not apply"),
    ],
)
def test_a_matrix_that_does_not_fit_is_refused(changed: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(MATRIX, **changed)  # type: ignore[arg-type]


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


NAN = np.nan


def numbers(*rows: object) -> Numbers:
    return np.array(rows, np.float64)


OCTAVES = numbers([7, 8, 9], [7, 8, 9], [9, 8, 9])


COSTS = numbers([10, 20, 40], [10, 20, 40], [10, 20, 40])


def known(*times: object) -> KnownTimes:
    return KnownTimes(COSTS[: len(times)], numbers(*times), OCTAVES[: len(times)])


def test_without_times_the_order_is_that_of_the_cost_model() -> None:
    nothing = KnownTimes(np.empty((0, 3)), np.empty((0, 3)), np.empty((0, 3)))
    assert corrected_scores(nothing, COSTS[0], OCTAVES[0]) == pytest.approx(np.log(COSTS[0]))


def test_a_configuration_that_beat_the_model_on_the_same_sizes_is_preferred() -> None:
    # the second column took a third of what the model says
    scores = corrected_scores(known([3.0, 2.0, 12.0]), COSTS[0], OCTAVES[0])
    assert np.argsort(scores).tolist() == [1, 0, 2]


def test_the_score_is_the_shrunken_mean_of_residuals_by_distance() -> None:
    found = corrected_scores(known([10.0, 40.0, NAN], [NAN, NAN, NAN], [10.0, 20.0, 80.0]), *asked())
    near, far = 1.0, np.exp(-4 / WIDTH)
    first = (near * -np.log(2) / 2 + far * -np.log(2) / 3) / (SHRINKAGE + near + far)
    second = (near * np.log(2) / 2 + far * -np.log(2) / 3) / (SHRINKAGE + near + far)
    third = far * np.log(2) * 2 / 3 / (SHRINKAGE + far)
    assert found == pytest.approx(np.log(COSTS[0]) + numbers(first, second, third))


def asked() -> tuple[Numbers, Numbers]:
    return COSTS[0], OCTAVES[0]


def test_that_a_whole_problem_is_slower_than_the_model_says_changes_nothing() -> None:
    assert corrected_scores(known([1e3, 2e3, 4e3]), *asked()) == pytest.approx(np.log(COSTS[0]))


def test_a_problem_with_one_time_says_nothing() -> None:
    assert corrected_scores(known([NAN, 1.0, NAN]), *asked()) == pytest.approx(np.log(COSTS[0]))


def test_what_has_no_model_counts_as_the_cheapest_of_the_problem() -> None:
    costs = numbers([np.inf, 20, 40], [np.inf, np.inf, np.inf])
    assert filled_costs(costs).tolist() == [[20, 20, 40], [1, 1, 1]]
    assert filled_costs(np.empty((2, 0))).shape == (2, 0)
    scores = corrected_scores(
        KnownTimes(costs, numbers([1, 1, 2], [NAN] * 3), OCTAVES[:2]), costs[0], asked()[1]
    )
    assert np.isfinite(scores).all()
