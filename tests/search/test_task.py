import numpy as np
import pytest

from tests.search.tasks import grid, line, task, tell
from tuner.search.task import SCORED_LIMIT, START_ROWS, Neighbours, is_starting, start_row
from tuner.space.expressions import parse
from tuner.space.feasible_set import FeasibleSet
from tuner.space.search_space import Knob, SearchSpace


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


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_the_first_row_is_in_the_middle() -> None:
    square = task(grid("ab", 9))
    assert square.feasible.candidate(start_row(square, rng())).choices == (("a", 4), ("b", 4))


def test_the_next_rows_are_apart() -> None:
    gaps = {True: 0.0, False: 0.0}
    for seed in range(10):
        square = task(grid("ab", 30))
        for _ in range(START_ROWS):
            square.pool.propose(start_row(square, rng(seed)))
        drawn = rng(seed).integers(square.feasible.rows, size=START_ROWS)
        for is_ours, rows in ((True, np.array(square.pool.order)), (False, drawn)):
            codes = square.table.codes[rows].astype(int)
            apart = np.abs(codes[:, None] - codes).sum(axis=2) + 1000 * np.eye(len(rows), dtype=int)
            gaps[is_ours] += float(apart.min())
    assert gaps[True] > 1.5 * gaps[False]


def test_every_strategy_gets_its_rows_and_a_small_one_no_more_than_it_has() -> None:
    several = task(grid("ab", name="s"), line(2, "t"), grid("ab", name="u"))
    while is_starting(several):
        several.pool.propose(start_row(several, rng(len(several.pool.order))))
    met = [several.feasible.candidate(row).strategy for row in several.pool.order]
    assert [met.count(name) for name in "stu"] == [4, 2, 3]
    assert met[:3] == ["s", "t", "u"]


def test_the_start_ends_after_so_many_proposals() -> None:
    one = task(line(40))
    tell(one, *((row, 1.0) for row in range(START_ROWS - 1)))
    assert is_starting(one)
    one.pool.propose(20)
    assert not is_starting(one)


def test_the_middle_of_a_large_set_is_found_in_a_sample() -> None:
    large = task(grid("abcdef"))
    picked = dict(large.feasible.candidate(start_row(large, rng())).choices)
    assert all(2 <= int(value) <= 5 for value in picked.values())


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
