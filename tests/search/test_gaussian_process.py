import numpy as np
import pytest

from tests.search.tasks import grid, line, task
from tuner.search.configurations import RowTable, whole
from tuner.search.gaussian_process import BLOCK, SCALE_COUNT, GaussianProcess, Widths, correlation
from tuner.space.feasible_set import FeasibleSet
from tuner.space.search_space import Knob, SearchSpace

WIDTHS = Widths(np.array([0.7, 2.0, 0.3]), 1e-3)
KNOBS = (Knob("a", (1, 2, 4, 8)), Knob("o", ("x", "y", "z")), Knob("b", tuple(range(40))))
VALUES = np.array([-1.0, 0.5, 0.2, 1.1, -0.4])


@pytest.fixture
def process() -> GaussianProcess:
    return GaussianProcess(whole(table()), WIDTHS)


def table() -> RowTable:
    return RowTable.of(FeasibleSet.of((SearchSpace("s", KNOBS),)))


def expected(rows: list[int], values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the posterior by the book, in double precision over all rows at once."""
    covariance = correlation(np.tensordot(WIDTHS.weights, table().squares(), axes=1))
    seen = covariance[np.ix_(rows, rows)] + WIDTHS.noise * np.eye(len(rows))
    solved = np.linalg.solve(seen, covariance[rows])
    variance = (values @ np.linalg.solve(seen, values) + SCALE_COUNT) / (len(rows) + SCALE_COUNT)
    return solved.T @ values, np.sqrt((1 - (covariance[rows] * solved).sum(axis=0)) * variance)


def test_the_posterior_is_that_of_the_book(process: GaussianProcess) -> None:
    rows = [3, 100, 250, 330, 479]
    mean, deviation = process.posterior(rows, table().part(np.array(rows)), VALUES)
    right_mean, right_deviation = expected(rows, VALUES)
    assert mean == pytest.approx(right_mean, abs=1e-3)
    assert deviation == pytest.approx(right_deviation, abs=1e-3)
    assert np.abs(mean[rows] - VALUES).max() < 0.05


def test_what_was_known_before_does_not_change_an_answer(process: GaussianProcess) -> None:
    """Rows come, one goes, others come: the same as if only the last had been asked."""
    for rows in ([3, 100], [3, 100, 250, 7], [3, 9]):
        process.posterior(rows, table().part(np.array(rows)), VALUES[: len(rows)])
    rows = [3, 9, 479, 250, 100]
    seen = table().part(np.array(rows))
    fresh = GaussianProcess(whole(table()), WIDTHS).posterior(rows, seen, VALUES)
    again = process.posterior(rows, seen, VALUES)
    assert (again[0] == fresh[0]).all()
    assert (again[1] == fresh[1]).all()


@pytest.mark.parametrize("count", [BLOCK - 1, BLOCK, 3 * BLOCK + 5])
def test_blocks_of_observations_add_up_to_the_posterior_of_the_book(
    process: GaussianProcess, count: int
) -> None:
    rows = [int(row) for row in np.random.default_rng(count).permutation(480)[:count]]
    values = np.sin(np.arange(count))
    mean, deviation = process.posterior(rows, table().part(np.array(rows)), values)
    right_mean, right_deviation = expected(rows, values)
    assert mean == pytest.approx(right_mean, abs=3e-3)
    assert deviation == pytest.approx(right_deviation, abs=3e-3)


def test_blocks_that_are_kept_give_the_answer_of_a_fresh_process(process: GaussianProcess) -> None:
    """Rows come one by one, one within the kept blocks goes, and all come back."""
    rows = [int(row) for row in np.random.default_rng(0).permutation(480)[: 3 * BLOCK + 5]]
    less = [row for row in rows if row != rows[BLOCK + 3]]
    asked = [rows[:count] for count in range(1, len(rows))]
    for some in (*asked, less, rows):
        values = np.cos(np.arange(len(some)))
        seen = table().part(np.array(some))
        again = process.posterior(some, seen, values)
        fresh = GaussianProcess(whole(table()), WIDTHS).posterior(some, seen, values)
        assert (again[0] == fresh[0]).all()
        assert (again[1] == fresh[1]).all()


def test_strategies_with_other_knobs_have_a_posterior() -> None:
    several = task(grid("ab", 4, "s"), line(4, "t"))
    process = GaussianProcess(whole(several.table), Widths(np.ones(3), 1e-3))
    mean, deviation = process.posterior([0, 17], several.table.part(np.array([0, 17])), np.array([-1.0, 1.0]))
    assert mean[0] < mean[5] < mean[17]
    assert (deviation[[0, 17]] < deviation[10]).all()
