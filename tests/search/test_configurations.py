"""Rows of a search as numbers, the pool of those proposed, and what methods ask of a task."""

import numpy as np
import pytest

from tests.search.tasks import grid, line, rng, task, tell
from tuner.core.candidate import Value
from tuner.search.configurations import SAMPLE_ROWS, Column, Pool, RowTable, alignments, sampled, whole
from tuner.search.method import SCORED_LIMIT, START_ROWS, Neighbours, is_starting, start_row
from tuner.space.expressions import parse
from tuner.space.feasible_set import FeasibleSet
from tuner.space.search_space import Knob, SearchSpace


def test_values_rank_by_their_power_of_two_in_a_column_for_each_knob_that_has_them() -> None:
    assert alignments((16, 32, 48, 64, 80)) == (0, 1, 0, 2, 0)
    assert alignments((0, 3, 4, 6)) == (0, 0, 2, 1)  # 0 is "off", not divisible by everything
    says_so_already: tuple[tuple[Value, ...], ...] = ((1, 2, 4, 8), (1, 3, 5), (2, 3))
    for values in (*says_so_already, ("a", "b", "c"), (-4, 3, 8, 5)):
        assert alignments(values) == ()
    both = SearchSpace("s", (Knob("a", (16, 32, 48)), Knob("b", (1, 2))))
    table = RowTable.of(FeasibleSet.of((both, SearchSpace("t", (Knob("b", (1, 2)),)))))
    given = table.with_alignments()
    assert (len(given.columns), given.columns[-1].levels) == (len(table.columns) + 1, 2)
    assert given.codes[:, -1].tolist() == [0, 0, 1, 1, 0, 0, -1, -1]
    assert np.array_equal(given.codes[:, :-1], table.codes)
    bare = RowTable.of(FeasibleSet.of((SearchSpace("s", (Knob("a", (1, 2, 4)),)),)))
    assert bare.with_alignments() is bare


def test_rows_are_sampled_and_drawn_from_the_unseen_down_to_the_last_one() -> None:
    large = task(grid("abcdef"))
    scope = sampled(large.table, large.pool, rng(), [5, 262_143])
    assert {5, 262_143} <= set(scope.rows.tolist())
    assert SAMPLE_ROWS * 0.9 < len(scope.rows) <= SAMPLE_ROWS + 2
    assert (np.diff(scope.rows) > 0).all()
    assert (scope.table.codes == large.table.codes[scope.rows]).all()
    assert not scope.is_whole
    large.pool.unseen[:] = False
    large.pool.unseen[123] = True
    assert 123 in sampled(large.table, large.pool, rng(1), []).rows
    every = whole(task(line(9)).table)
    assert (every.rows.tolist(), every.is_whole) == (list(range(9)), True)
    pool = Pool(6)
    pool.propose(3)
    assert {row for seed in range(50) for row in pool.draw(rng(seed), 3, 2, 5).tolist()} == {2, 4}
    assert len(Pool(2).draw(rng(), 4)) <= 4
    pool = Pool(1000)
    for row in {*range(1000)} - {617}:
        pool.propose(row)
    assert set(pool.draw(rng(), 3).tolist()) == {617}
    pool.propose(617)
    assert len(pool.draw(rng(), 3)) == 0


def test_a_row_goes_from_unseen_over_pending_to_told_once() -> None:
    pool = Pool(2)
    pool.propose(1)
    assert (list(pool.unseen), pool.proposed, pool.outcomes) == ([True, False], {1}, {})
    pool.tell(1, None)
    assert (pool.outcomes, pool.is_exhausted) == ({1: None}, False)
    with pytest.raises(ValueError, match="row 0 is not pending"):
        pool.tell(0, 1.0)
    pool.propose(0)
    assert pool.is_exhausted
    for row, message in (
        (-1, r"row: found -1, allowed 0\.\.1"),
        (2, "found 2"),
        (0, "row 0 was proposed before"),
    ):
        with pytest.raises(ValueError, match=message):
            pool.propose(row)
    pool.tell(0, 1.0)
    with pytest.raises(ValueError, match="row 0 is not pending"):
        pool.tell(0, 2.0)


def test_the_fastest_come_first_and_failures_not_at_all_and_rows_wait_in_order() -> None:
    pool = Pool(5)
    for row, value in ((3, 2.0), (1, 1.0), (4, None), (0, 1.0)):
        pool.propose(row)
        pool.tell(row, value)
    pool.propose(2)
    assert (pool.fastest(), pool.order) == ([0, 1, 3], [3, 1, 4, 0, 2])
    pool = Pool(9, first=(4, 2, 4, 7))
    pool.propose(2)
    pool.put_first(8)
    waiting = []
    while (next_row := pool.next_waiting()) is not None:
        pool.propose(next_row)
        waiting.append(next_row)
    assert waiting == [8, 4, 7]


def test_missing_values_lie_between_and_differences_add_up_to_distances_of_points() -> None:
    number = Column(5, is_ordinal=True, is_strategy=False)
    assert number.differences(1).tolist() == [0.25, 0, 0.25, 0.5, 0.75, 0.25]
    assert number.differences(-1).tolist() == [0.5, 0.25, 0, 0.25, 0.5, 0]
    text = Column(3, is_ordinal=False, is_strategy=False)
    assert text.differences(1).tolist() == [1, 0, 1, 0.5]
    assert text.differences(-1).tolist() == [0.5, 0.5, 0.5, 0]
    space = SearchSpace("s", (Knob("one", (7,)), Knob("a", (1, 2, 4)), Knob("o", ("x", "y"))))
    table = RowTable.of(FeasibleSet.of((space,)))
    assert table.columns == (Column(3, True, False), Column(2, False, False))
    assert table.codes.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1], [2, 0], [2, 1]]
    assert len(RowTable.of(FeasibleSet.of((SearchSpace("s", ()),))).columns) == 0
    table = RowTable.of(FeasibleSet.of((line(3, "s"), grid("ab", 3, "t"))))
    far = table.differences(table.codes[0])  # s(a=0)
    assert far[:3].tolist() == [0, 0.5, 1]
    assert far[3:6].tolist() == [1.5, 1, 1.5]  # another strategy, b is missing here
    assert (table.part(np.array([4, 0])).differences(table.codes[0]) == far[[4, 0]]).all()
    spaces = (grid("ab", 3, "s"), SearchSpace("t", (Knob("a", (0, 1, 2)), Knob("o", ("x", "y", "z")))))
    squares = RowTable.of(FeasibleSet.of(spaces)).squares().sum(axis=0)
    centring = np.eye(len(squares)) - 1 / len(squares)
    gram = -0.5 * centring @ squares @ centring  # of the points, if there are any (Schoenberg)
    assert np.linalg.eigvalsh(gram).min() > -1e-6
    assert (np.diag(squares) == 0).all()


def test_the_best_is_the_unseen_row_with_the_highest_score_of_a_small_set_or_a_sample() -> None:
    small = task(line(9))
    assert small.scope(rng(0)) is small.scope(rng(1))
    large = task(grid("abcdef"))
    assert large.feasible.rows > SCORED_LIMIT
    tell(large, (77_777, 1.0), (5, None), (3, 2.0))
    scopes = [large.scope(rng(seed)) for seed in (0, 0, 1)]
    assert (scopes[0].rows == scopes[1].rows).all()
    assert len(np.setdiff1d(scopes[0].rows, scopes[2].rows)) > 1000
    assert {*large.neighbours.of(77_777), *large.neighbours.of(3)} <= set(scopes[0].rows.tolist())
    small = task(line(5))
    tell(small, (4, 1.0))
    score = np.array([0, 2, 1, 2, 9], np.float32)
    scope = small.scope(rng())
    assert {small.best_unseen(scope, score, rng(seed)) for seed in range(20)} == {1, 3}
    tell(small, *((row, 1.0) for row in (0, 1, 3)))
    assert small.best_unseen(scope, np.zeros(5, np.float32), rng()) == 2  # the last one


def test_every_strategy_gets_its_rows_the_first_in_the_middle_and_the_next_apart() -> None:
    square = task(grid("ab", 9))
    assert square.feasible.candidate(start_row(square, rng())).choices == (("a", 4), ("b", 4))
    large = task(grid("abcdef"))
    picked = dict(large.feasible.candidate(start_row(large, rng())).choices)
    assert all(2 <= int(value) <= 5 for value in picked.values())
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
    several = task(grid("ab", name="s"), line(2, "t"), grid("ab", name="u"))
    while is_starting(several):
        several.pool.propose(start_row(several, rng(len(several.pool.order))))
    met = [several.feasible.candidate(row).strategy for row in several.pool.order]
    assert ([met.count(name) for name in "stu"], met[:3]) == ([4, 2, 3], ["s", "t", "u"])
    one = task(line(40))
    tell(one, *((row, 1.0) for row in range(START_ROWS - 1)))
    assert is_starting(one)
    one.pool.propose(20)
    assert not is_starting(one)


def test_neighbours_differ_in_one_knob_and_are_allowed_and_of_the_same_strategy() -> None:
    near = Neighbours(FeasibleSet.of((grid("ab", 3),)))
    assert near.of(4) == (1, 3, 5, 7)
    assert near.of(4) is near.of(4)
    knobs = (Knob("a", (0, 1, 2)), Knob("b", (0, 1, 2)))
    feasible = FeasibleSet.of((SearchSpace("s", knobs, (parse("a <= b", "c[0]"),)),))
    assert {dict(feasible.candidate(row).choices)["b"] for row in Neighbours(feasible).of(0)} == {1, 2}
    assert Neighbours(FeasibleSet.of((line(3, "s"), line(3, "t")))).of(1) == (0, 2)
