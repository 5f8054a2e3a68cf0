from dataclasses import replace

import numpy as np
import pytest

from tuner.analysis.time_matrix import TimeMatrix
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
