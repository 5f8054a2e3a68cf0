import numpy as np
import pytest

from tests.search.tasks import grid, line, task, tell
from tuner.search.configurations import RowTable, whole
from tuner.search.gaussian_process import (
    BLOCK,
    JITTER,
    SCALE_COUNT,
    GaussianProcess,
    Widths,
    _loss,
    correlation,
    fit,
    rows_to_model,
    standardized,
)
from tuner.space.feasible_set import FeasibleSet
from tuner.space.search_space import Knob, SearchSpace

WIDTHS = Widths(np.array([0.7, 2.0, 0.3]), 1e-3)
KNOBS = (Knob("a", (1, 2, 4, 8)), Knob("o", ("x", "y", "z")), Knob("b", tuple(range(40))))


@pytest.fixture
def process() -> GaussianProcess:
    return GaussianProcess(whole(table()), WIDTHS)


def table() -> RowTable:
    return RowTable.of(FeasibleSet.of((SearchSpace("s", KNOBS),)))


def expected(rows: list[int], values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    covariance = correlation(np.tensordot(WIDTHS.weights, table().squares(), axes=1))
    seen = covariance[np.ix_(rows, rows)] + WIDTHS.noise * np.eye(len(rows))
    solved = np.linalg.solve(seen, covariance[rows])
    variance = (values @ np.linalg.solve(seen, values) + SCALE_COUNT) / (len(rows) + SCALE_COUNT)
    return solved.T @ values, np.sqrt((1 - (covariance[rows] * solved).sum(axis=0)) * variance)


@pytest.mark.parametrize("count", [5, BLOCK - 1, BLOCK, 3 * BLOCK + 5])
def test_the_posterior_of_blocks_too_is_that_of_the_book(process: GaussianProcess, count: int) -> None:
    rows = [int(row) for row in np.random.default_rng(count).permutation(480)[:count]]
    values = np.sin(np.arange(count))
    found = process.posterior(rows, table().part(np.array(rows)), values)
    for one, right in zip(found, expected(rows, values), strict=True):
        assert one == pytest.approx(right, abs=1e-3 if count == 5 else 3e-3)
    assert count > 5 or np.abs(found[0][rows] - values).max() < 0.05


def test_what_was_known_before_changes_no_answer_and_strategies_with_other_knobs_have_one(
    process: GaussianProcess,
) -> None:
    """Rows come one by one, one within the kept blocks goes: as if only the last had been asked."""
    rows = [int(row) for row in np.random.default_rng(0).permutation(480)[: 3 * BLOCK + 5]]
    less = [row for row in rows if row != rows[BLOCK + 3]]
    asked = [[3, 100], [3, 100, 250, 7], [3, 9], [3, 9, 479, 250, 100]]
    asked += [rows[:count] for count in range(1, len(rows))]
    for some in (*asked, less, rows):
        values = np.cos(np.arange(len(some)))
        seen = table().part(np.array(some))
        again = process.posterior(some, seen, values)
        fresh = GaussianProcess(whole(table()), WIDTHS).posterior(some, seen, values)
        assert np.array_equal(again, fresh)
    several = task(grid("ab", 4, "s"), line(4, "t"))
    process = GaussianProcess(whole(several.table), Widths(np.ones(3), 1e-3))
    mean, deviation = process.posterior([0, 17], several.table.part(np.array([0, 17])), np.array([-1.0, 1.0]))
    assert mean[0] < mean[5] < mean[17]
    assert (deviation[[0, 17]] < deviation[10]).all()


def squares_and_values() -> tuple[np.ndarray, np.ndarray]:
    table = task(grid("ab", 7)).table.part(np.random.default_rng(3).permutation(49)[:30])
    values = np.cos(table.codes[:, 0] / 2.0)  # b does not matter
    return table.squares(), (values - values.mean()) / values.std()


def test_correlation_falls_to_zero_and_weights_and_noise_follow_the_slope_of_the_loss() -> None:
    falling = correlation(np.array([0, 0.1, 1, 100], np.float32))
    assert falling[0] == 1
    assert falling.dtype == np.float32
    assert (np.diff(falling) < 0).all()
    assert 0 <= falling[-1] < 1e-9
    squares, values = squares_and_values()
    widths = fit(squares, values)
    assert widths.weights[0] > 5 * widths.weights[1]
    assert JITTER < widths.noise < 0.02
    mixed = np.random.default_rng(1).normal(size=len(values))
    assert fit(squares, mixed).noise > 2 * widths.noise
    assert len(fit(np.zeros((0, 1, 1)), np.zeros(1)).weights) == 0  # a row without knobs
    at = np.array([0.3, -0.4, -2.0])
    _, slope = _loss(squares, values, at)
    for place in range(3):
        off = np.eye(3)[place] * 1e-5
        difference = (_loss(squares, values, at + off)[0] - _loss(squares, values, at - off)[0]) / 2e-5
        assert slope[place] == pytest.approx(difference, rel=1e-4, abs=1e-6)


def test_logarithms_are_modelled_of_the_fastest_and_latest_and_failures_are_slow() -> None:
    one = task(line(8))
    tell(one, (0, 1.0), (1, 2.0), (2, 3.0), (3, 40.0))
    values = standardized(one.pool, [0, 1, 2, 3])
    assert (values.mean(), values.std()) == (pytest.approx(0), pytest.approx(1))
    assert values[0] < values[1] < values[2] == values[3]  # how slow a slow row is, matters little
    one = task(line(8))
    tell(one, (0, 1.0), (1, 2.0), (2, 3.0), (3, None), (5, 0.0), (6, 1e-9))
    one.pool.propose(4)
    values = standardized(one.pool, [0, 1, 2, 3, 4, 5, 6])
    assert values[2] == values[3] == values[4] == values.max()
    assert values[5] < values[6] < values[0]
    for value in (None, 0.0, 2.0):  # equal outcomes say nothing
        equal = task(line(8))
        tell(equal, (0, value), (1, value))
        assert standardized(equal.pool, [0, 1]).tolist() == [0, 0]
    one = task(line(20))
    tell(one, *((row, 1.0 + (row * 7) % 20) for row in range(12)))
    assert rows_to_model(one.pool, 12, 12) == list(range(12))
    assert rows_to_model(one.pool, 12, 4) == [0, 3, 10, 11]  # 1 + 0 and 1 + 1; the last two
    assert rows_to_model(one.pool, 5, 4) == [0, 3, 4]
