import numpy as np

from tests.search.tasks import grid, line, task
from tuner.search.configurations import SAMPLE_ROWS, sampled, whole


def test_the_whole_scope_is_every_row() -> None:
    scope = whole(task(line(9)).table)
    assert scope.rows.tolist() == list(range(9))
    assert scope.is_whole


def test_a_sample_has_the_rows_asked_for_and_their_codes() -> None:
    large = task(grid("abcdef"))
    scope = sampled(large.table, large.pool, np.random.default_rng(0), [5, 262_143])
    assert {5, 262_143} <= set(scope.rows.tolist())
    assert SAMPLE_ROWS * 0.9 < len(scope.rows) <= SAMPLE_ROWS + 2
    assert (np.diff(scope.rows) > 0).all()
    assert (scope.table.codes == large.table.codes[scope.rows]).all()
    assert not scope.is_whole


def test_a_sample_has_an_unseen_row_even_when_one_is_left() -> None:
    large = task(grid("abcdef"))
    large.pool.unseen[:] = False
    large.pool.unseen[123] = True
    scope = sampled(large.table, large.pool, np.random.default_rng(0), [])
    assert 123 in scope.rows
