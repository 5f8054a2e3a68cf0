import numpy as np

from tests.search.tasks import grid, task, tell
from tuner.search.surrogates import Trees


def test_most_choices_are_below_the_cliff() -> None:
    square = task(grid("abc"))
    rows = np.random.default_rng(0).permutation(512)[:80].tolist()
    low = square.table.codes.sum(axis=1) < 8
    tell(square, *((row, 1.0 + row / 1000 if low[row] else 9.0) for row in rows))
    chosen = [Trees(square).choose(np.random.default_rng(seed)) for seed in range(10)]
    assert sum(bool(low[row]) for row in chosen) >= 8
    assert all(square.pool.unseen[row] for row in chosen)
