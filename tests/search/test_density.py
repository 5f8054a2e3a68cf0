import numpy as np

from tests.search.tasks import grid, line, task, tell
from tuner.search.configurations import RowTable, Scope
from tuner.search.density import GOOD_MIN, PRIOR, Densities, RowSimilarity
from tuner.space.feasible_set import FeasibleSet
from tuner.space.search_space import Knob, SearchSpace


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


EIGHT = tuple(range(8))


def around(feasible: FeasibleSet, row: int) -> np.ndarray:
    table = RowTable.of(feasible)
    return RowSimilarity(table).around(table.codes[row])


def test_the_kernel_is_a_density_whose_mean_is_the_prior() -> None:
    density = around(FeasibleSet.of((SearchSpace("s", tuple(Knob(name, EIGHT) for name in "abcd")),)), 123)
    assert abs(float(density.mean()) / PRIOR - 1) < 0.01
    assert int(np.argmax(density)) == 123


def test_nearer_values_are_likelier_and_texts_are_same_or_different() -> None:
    feasible = FeasibleSet.of((SearchSpace("s", (Knob("a", (1, 2, 8)), Knob("o", ("x", "y", "z")))),))
    density = around(feasible, 0).reshape(3, 3)
    assert density[0, 0] > density[1, 0] > density[2, 0]
    assert density[0, 0] > density[0, 1] == density[0, 2]


def test_another_strategy_is_far_and_a_missing_knob_says_nothing() -> None:
    feasible = FeasibleSet.of(
        (SearchSpace("s", (Knob("a", (1, 2)),)), SearchSpace("t", (Knob("a", (1, 2)), Knob("b", (1, 2)))))
    )
    density = around(feasible, 0)  # s(a=1)
    assert density[0] > density[1] > density[2] > density[4]
    assert density[2] == density[3]
