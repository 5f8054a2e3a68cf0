import numpy as np

from tests.search.tasks import grid, line, task, tell
from tuner.search.configurations import Scope
from tuner.search.density import GOOD_MIN, Densities


def test_the_ratio_is_largest_where_fast_rows_are() -> None:
    one = task(line(40))
    tell(one, (10, 1.0), (11, 1.1), (30, 5.0), (31, 6.0), (5, 7.0))
    gain = Densities(one).log_gain(one.scope(np.random.default_rng(0)))
    assert int(np.argmax(gain)) in (9, 10, 11, 12)
    assert int(np.argmin(gain)) in (30, 31)


def test_failures_and_pending_rows_repel() -> None:
    one = task(line(40))
    tell(one, (10, None))
    one.pool.propose(30)
    gain = Densities(one).log_gain(one.scope(np.random.default_rng(0)))
    assert gain[20] > max(gain[10], gain[30])


def test_the_sums_are_the_same_as_if_made_at_once() -> None:
    """Rows become good and stop being so; integers forget nothing."""
    square = task(grid("ab"))
    kept = Densities(square)
    scope = square.scope(np.random.default_rng(0))
    for number, row in enumerate(np.random.default_rng(1).permutation(64)[:30].tolist()):
        tell(square, (row, float((row * 29) % 64)))
        gain = kept.log_gain(scope)
        assert (gain == Densities(square).log_gain(scope)).all(), number
    assert GOOD_MIN == 2


def test_a_part_of_the_rows_has_the_values_of_the_whole() -> None:
    square = task(grid("ab"))
    tell(square, (3, 1.0), (20, 2.0), (50, 3.0))
    rows = np.array([1, 3, 40, 63])
    whole = Densities(square).log_gain(square.scope(np.random.default_rng(0)))
    part = Densities(square).log_gain(Scope(rows, square.table.part(rows), is_whole=False))
    assert (part == whole[rows]).all()
