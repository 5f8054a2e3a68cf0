import numpy as np

from tests.search.tasks import grid, rng, task, tell
from tuner.search import simple_methods
from tuner.search.method import SearchTask
from tuner.search.simple_methods import (
    ARMS,
    POPULATION,
    PROBE_EVERY,
    Ensemble,
    Evolution,
    Local,
    best,
    credit,
    probed,
)


def test_every_method_is_probed_in_turn_and_credit_goes_to_those_that_were_fast() -> None:
    turns = [probed(turn) for turn in range(8 * PROBE_EVERY)]
    assert (turns[::PROBE_EVERY], turns.count(None)) == ([0, 1, 2, 3] * 2, 8 * (PROBE_EVERY - 1))
    square = task(grid("ab"))
    for turn in range(33):
        tell(square, (turn, 1.0 if probed(turn) == ARMS.index(Evolution) else 5.0 + turn))
    assert chosen(Ensemble, square, 5) == chosen(Evolution, square, 5)
    square = task(grid("ab"))
    for turn in range(32):
        tell(square, (turn, 1.0 if probed(turn) == 1 else None if turn % 3 == 0 else 5.0 + turn))
    assert best(square.pool) == 1
    assert credit(square.pool, 1) == 22 / 32  # all that have a time
    assert credit(square.pool, 0) < 0.3
    square = task(grid("abc"))
    for turn in range(96):
        tell(square, (turn, 1.0 if probed(turn) == (1 if turn < 48 else 2) else 5.0 + turn))
    assert best(square.pool) == 2
    square = task(grid("ab"))
    assert best(square.pool) == 0
    tell(square, (0, None))  # of the first
    square.pool.propose(1)
    assert [credit(square.pool, arm) for arm in range(len(ARMS))] == [0, 1, 1, 1]


def chosen(method: type[Ensemble | Evolution | Local], square: SearchTask, seeds: int) -> list[int]:
    return [method(square).choose(rng(seed)) for seed in range(seeds)]


def test_children_have_the_values_of_fast_parents_and_surroundings_of_the_fastest_are_climbed() -> None:
    deep = task(grid("abcd", 6))
    parents = [row for row in range(1296) if set(deep.table.codes[row].tolist()) <= {0, 5}]  # corners
    tell(deep, *((row, 1.0) for row in parents), *((row + 1, 9.0) for row in range(43, 43 + POPULATION)))
    codes = deep.table.codes[chosen(Evolution, deep, 60)]
    assert np.isin(codes, (1, 2, 3, 4)).sum(axis=1).mean() < 1.7  # of 4; a random row has 2.7
    deep = task(grid("abcd", 6))
    tell(deep, *((row, 1.0 + place) for place, row in enumerate(range(0, 1296, 60))))
    rows = chosen(Evolution, deep, 60)
    fast, slow = (deep.table.differences(deep.table.codes[row])[rows].mean() for row in (0, 1140))
    assert fast < slow
    square = task(grid("ab"))
    tell(square, *((row, 1.0 + row) for row in range(POPULATION - 1)))
    assert len(set(chosen(Evolution, square, 60))) > 25
    square = task(grid("ab"))
    tell(square, (27, 1.0), *((row, 5.0 + row) for row in (0, 7, 56, 63, 50)))
    surrounding = set(square.neighbours.of(27))
    assert sum(row in surrounding for row in chosen(Local, square, 40)) >= 34
    square = task(grid("ab"))
    tell(square, (27, 1.0), (0, 2.0), (63, 3.0), *((row, 9.0) for row in square.neighbours.of(27)))
    assert sum(row in square.neighbours.of(0) for row in chosen(Local, square, 40)) >= 34
    cube = task(grid("abc", 4))
    tell(cube, (21, 1.0), *((row, 2.0 + row) for row in cube.neighbours.of(21)))
    for fastest in cube.pool.fastest()[: simple_methods.CLIMBED]:
        tell(cube, *((row, 999.0) for row in cube.neighbours.of(fastest) if cube.pool.unseen[row]))
    changed = (cube.table.codes[chosen(Local, cube, 40)] != cube.table.codes[21]).sum(axis=1)
    assert changed.tolist().count(2) >= 34
    square = task(grid("ab"))
    tell(square, *((row, None) for row in range(10)))
    assert len(set(chosen(Local, square, 40))) > 20
