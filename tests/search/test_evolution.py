import numpy as np

from tests.search.tasks import grid, task, tell
from tuner.search.simple_methods import POPULATION, Evolution
from tuner.search.task import SearchTask


def chosen(square: SearchTask, seeds: int = 60) -> list[int]:
    return [Evolution(square).choose(np.random.default_rng(seed)) for seed in range(seeds)]


def test_children_have_the_values_of_their_parents_but_for_mutations() -> None:
    deep = task(grid("abcd", 6))
    parents = [row for row in range(1296) if set(deep.table.codes[row].tolist()) <= {0, 5}]  # corners
    tell(deep, *((row, 1.0) for row in parents), *((row + 1, 9.0) for row in range(43, 43 + POPULATION)))
    inside = [sum(code in (1, 2, 3, 4) for code in deep.table.codes[row].tolist()) for row in chosen(deep)]
    assert np.mean(inside) < 1.7  # of 4; a random row has 2.7


def test_fast_parents_have_more_children() -> None:
    deep = task(grid("abcd", 6))
    tell(deep, *((row, 1.0 + place) for place, row in enumerate(range(0, 1296, 60))))
    near_fast = [deep.table.differences(deep.table.codes[0])[row] for row in chosen(deep)]
    near_slow = [deep.table.differences(deep.table.codes[1140])[row] for row in chosen(deep)]
    assert np.mean(near_fast) < np.mean(near_slow)


def test_rows_are_drawn_until_there_is_a_population() -> None:
    square = task(grid("ab"))
    tell(square, *((row, 1.0 + row) for row in range(POPULATION - 1)))
    assert len(set(chosen(square))) > 25
