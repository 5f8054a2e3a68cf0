from tests.search.tasks import grid, line
from tuner.search.task import Neighbours
from tuner.space.expressions import parse
from tuner.space.feasible_set import FeasibleSet
from tuner.space.search_space import Knob, SearchSpace


def test_neighbours_differ_in_one_knob() -> None:
    near = Neighbours(FeasibleSet.of((grid("ab", 3),)))
    assert near.of(4) == (1, 3, 5, 7)
    assert near.of(4) is near.of(4)


def test_what_a_constraint_forbids_is_no_neighbour() -> None:
    knobs = (Knob("a", (0, 1, 2)), Knob("b", (0, 1, 2)))
    feasible = FeasibleSet.of((SearchSpace("s", knobs, (parse("a <= b", "c[0]"),)),))
    values = {dict(feasible.candidate(row).choices)["b"] for row in Neighbours(feasible).of(0)}
    assert values == {1, 2}


def test_another_strategy_is_no_neighbour() -> None:
    assert Neighbours(FeasibleSet.of((line(3, "s"), line(3, "t")))).of(1) == (0, 2)
