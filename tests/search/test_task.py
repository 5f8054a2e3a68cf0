import numpy as np
import pytest

from tests.search.tasks import grid, line, task, tell
from tuner.search.task import SCORED_LIMIT


def test_a_small_set_is_looked_at_whole_every_time() -> None:
    small = task(line(9))
    first, second = (small.scope(np.random.default_rng(seed)) for seed in range(2))
    assert first is second


def test_a_large_set_is_sampled_around_its_best_rows() -> None:
    large = task(grid("abcdef"))
    assert large.feasible.rows > SCORED_LIMIT
    tell(large, (77_777, 1.0), (5, None), (3, 2.0))
    scopes = [large.scope(np.random.default_rng(seed)) for seed in (0, 0, 1)]
    assert (scopes[0].rows == scopes[1].rows).all()
    assert len(np.setdiff1d(scopes[0].rows, scopes[2].rows)) > 1000
    near = {*large.neighbours.of(77_777), *large.neighbours.of(3)}
    assert near <= set(scopes[0].rows.tolist())


def test_the_best_is_the_unseen_row_with_the_highest_score_by_lot_among_equals() -> None:
    small = task(line(5))
    tell(small, (4, 1.0))
    score = np.array([0, 2, 1, 2, 9], np.float32)
    scope = small.scope(np.random.default_rng(0))
    assert {small.best_unseen(scope, score, np.random.default_rng(seed)) for seed in range(20)} == {1, 3}


@pytest.mark.parametrize("row", range(5))
def test_the_last_unseen_row_is_the_best(row: int) -> None:
    small = task(line(5))
    tell(small, *((other, 1.0) for other in range(5) if other != row))
    scope = small.scope(np.random.default_rng(0))
    assert small.best_unseen(scope, np.zeros(5, np.float32), np.random.default_rng(0)) == row
