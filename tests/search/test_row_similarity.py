import numpy as np

from tuner.search.configurations import RowTable
from tuner.search.density import PRIOR, RowSimilarity
from tuner.space.feasible_set import FeasibleSet
from tuner.space.search_space import Knob, SearchSpace

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
