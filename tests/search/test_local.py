import numpy as np

from tests.search.tasks import grid, task, tell
from tuner.search import simple_methods
from tuner.search.simple_methods import Local
from tuner.search.task import SearchTask


def chosen(square: SearchTask, seeds: int = 40) -> list[int]:
    return [Local(square).choose(np.random.default_rng(seed)) for seed in range(seeds)]


def test_most_choices_are_next_to_the_fastest_row() -> None:
    square = task(grid("ab"))
    tell(square, (27, 1.0), *((row, 5.0 + row) for row in (0, 7, 56, 63, 50)))
    surrounding = set(square.neighbours.of(27))
    assert sum(row in surrounding for row in chosen(square)) >= 34


def test_when_all_next_to_it_are_seen_the_next_fastest_is_climbed() -> None:
    square = task(grid("ab"))
    tell(square, (27, 1.0), (0, 2.0), (63, 3.0), *((row, 9.0) for row in square.neighbours.of(27)))
    assert sum(row in square.neighbours.of(0) for row in chosen(square)) >= 34


def test_when_all_are_climbed_the_nearest_row_comes() -> None:
    cube = task(grid("abc", 4))
    tell(cube, (21, 1.0), *((row, 2.0 + row) for row in cube.neighbours.of(21)))
    for fastest in cube.pool.fastest()[: simple_methods.CLIMBED]:
        tell(cube, *((row, 999.0) for row in cube.neighbours.of(fastest) if cube.pool.unseen[row]))
    changed = [(cube.table.codes[row] != cube.table.codes[21]).sum() for row in chosen(cube)]
    assert changed.count(2) >= 34


def test_without_a_time_it_draws() -> None:
    square = task(grid("ab"))
    tell(square, *((row, None) for row in range(10)))
    assert len(set(chosen(square))) > 20
