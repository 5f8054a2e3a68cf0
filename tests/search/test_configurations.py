import numpy as np
import pytest

from tests.search.tasks import grid, line, task
from tuner.search.configurations import SAMPLE_ROWS, Column, Pool, RowTable, alignments, sampled, whole
from tuner.space.feasible_set import FeasibleSet
from tuner.space.search_space import Knob, SearchSpace


def test_values_rank_by_the_power_of_two_that_divides_them() -> None:
    assert alignments((16, 32, 48, 64, 80)) == (0, 1, 0, 2, 0)
    assert alignments((0, 3, 4, 6)) == (0, 0, 2, 1)  # 0 is "off", not divisible by everything


def test_what_the_value_reports_is_not_reported_twice() -> None:
    assert alignments((1, 2, 4, 8)) == ()
    assert alignments((1, 3, 5)) == ()
    assert alignments((2, 3)) == ()


def test_texts_and_negative_numbers_have_none() -> None:
    assert alignments(("a", "b", "c")) == ()
    assert alignments((-4, 3, 8, 5)) == ()


def test_a_table_gets_a_column_for_each_knob_that_has_them() -> None:
    spaces = (
        SearchSpace("s", (Knob("a", (16, 32, 48)), Knob("b", (1, 2)))),
        SearchSpace("t", (Knob("b", (1, 2)),)),
    )
    table = RowTable.of(FeasibleSet.of(spaces))
    given = table.with_alignments()
    assert len(given.columns) == len(table.columns) + 1
    assert given.columns[-1].levels == 2
    assert given.codes[:, -1].tolist() == [0, 0, 1, 1, 0, 0, -1, -1]
    assert np.array_equal(given.codes[:, :-1], table.codes)


def test_a_table_without_them_stays_as_it_is() -> None:
    table = RowTable.of(FeasibleSet.of((SearchSpace("s", (Knob("a", (1, 2, 4)),)),)))
    assert table.with_alignments() is table


def test_the_whole_scope_is_every_row() -> None:
    scope = whole(task(line(9)).table)
    assert scope.rows.tolist() == list(range(9))
    assert scope.is_whole


def test_a_sample_has_the_rows_asked_for_and_their_codes() -> None:
    large = task(grid("abcdef"))
    scope = sampled(large.table, large.pool, np.random.default_rng(0), [5, 262_143])
    assert {5, 262_143} <= set(scope.rows.tolist())
    assert SAMPLE_ROWS * 0.9 < len(scope.rows) <= SAMPLE_ROWS + 2
    assert (np.diff(scope.rows) > 0).all()
    assert (scope.table.codes == large.table.codes[scope.rows]).all()
    assert not scope.is_whole


def test_a_sample_has_an_unseen_row_even_when_one_is_left() -> None:
    large = task(grid("abcdef"))
    large.pool.unseen[:] = False
    large.pool.unseen[123] = True
    scope = sampled(large.table, large.pool, np.random.default_rng(0), [])
    assert 123 in scope.rows


def test_a_row_goes_from_unseen_over_pending_to_told() -> None:
    pool = Pool(2)
    pool.propose(1)
    assert (list(pool.unseen), pool.proposed, pool.outcomes) == ([True, False], {1}, {})
    pool.tell(1, None)
    assert pool.outcomes == {1: None}
    assert not pool.is_exhausted
    pool.propose(0)
    assert pool.is_exhausted


@pytest.mark.parametrize(
    ("row", "message"),
    [(-1, r"row: found -1, allowed 0\.\.1"), (2, "found 2"), (0, "row 0 was proposed before")],
)
def test_a_row_that_is_not_there_or_was_proposed_is_refused(row: int, message: str) -> None:
    pool = Pool(2)
    pool.propose(0)
    with pytest.raises(ValueError, match=message):
        pool.propose(row)


def test_a_row_is_reported_once_and_only_while_pending() -> None:
    pool = Pool(2)
    with pytest.raises(ValueError, match="row 0 is not pending"):
        pool.tell(0, 1.0)
    pool.propose(0)
    pool.tell(0, 1.0)
    with pytest.raises(ValueError, match="row 0 is not pending"):
        pool.tell(0, 2.0)


def test_rows_are_drawn_from_the_unseen_within_bounds() -> None:
    pool = Pool(6)
    pool.propose(3)
    drawn = {row for seed in range(50) for row in pool.draw(np.random.default_rng(seed), 3, 2, 5).tolist()}
    assert drawn == {2, 4}
    assert len(Pool(2).draw(np.random.default_rng(0), 4)) <= 4


def test_the_last_unseen_row_is_drawn_and_then_none() -> None:
    pool = Pool(1000)
    for row in range(1000):
        if row != 617:
            pool.propose(row)
    assert set(pool.draw(np.random.default_rng(0), 3).tolist()) == {617}
    pool.propose(617)
    assert len(pool.draw(np.random.default_rng(0), 3)) == 0


def test_the_fastest_come_first_and_failures_not_at_all() -> None:
    pool = Pool(5)
    for row, value in ((3, 2.0), (1, 1.0), (4, None), (0, 1.0)):
        pool.propose(row)
        pool.tell(row, value)
    pool.propose(2)
    assert pool.fastest() == [0, 1, 3]
    assert pool.order == [3, 1, 4, 0, 2]


def test_rows_wait_in_order_and_a_replayed_one_goes_before_them() -> None:
    pool = Pool(9, first=(4, 2, 4, 7))
    pool.propose(2)
    pool.put_first(8)
    waiting = []
    while (row := pool.next_waiting()) is not None:
        pool.propose(row)
        waiting.append(row)
    assert waiting == [8, 4, 7]


NUMBER = Column(5, is_ordinal=True, is_strategy=False)


TEXT = Column(3, is_ordinal=False, is_strategy=False)


def test_numbers_are_as_far_apart_as_their_ranks_and_a_missing_one_is_in_the_middle() -> None:
    assert NUMBER.differences(1).tolist() == [0.25, 0, 0.25, 0.5, 0.75, 0.25]
    assert NUMBER.differences(-1).tolist() == [0.5, 0.25, 0, 0.25, 0.5, 0]


def test_texts_are_the_same_or_different_and_a_missing_one_is_between() -> None:
    assert TEXT.differences(1).tolist() == [1, 0, 1, 0.5]
    assert TEXT.differences(-1).tolist() == [0.5, 0.5, 0.5, 0]


def test_columns_with_one_value_are_left_out() -> None:
    space = SearchSpace("s", (Knob("one", (7,)), Knob("a", (1, 2, 4)), Knob("o", ("x", "y"))))
    table = RowTable.of(FeasibleSet.of((space,)))
    assert table.columns == (Column(3, True, False), Column(2, False, False))
    assert table.codes.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1], [2, 0], [2, 1]]
    assert len(RowTable.of(FeasibleSet.of((SearchSpace("s", ()),))).columns) == 0


def test_differences_of_rows_add_up_over_the_columns() -> None:
    table = RowTable.of(FeasibleSet.of((line(3, "s"), grid("ab", 3, "t"))))
    far = table.differences(table.codes[0])  # s(a=0)
    assert far[:3].tolist() == [0, 0.5, 1]
    assert far[3:6].tolist() == [1.5, 1, 1.5]  # another strategy, b is missing here
    assert (table.part(np.array([4, 0])).differences(table.codes[0]) == far[[4, 0]]).all()


def test_squares_are_distances_of_points_so_that_correlations_are_covariances() -> None:
    spaces = (grid("ab", 3, "s"), SearchSpace("t", (Knob("a", (0, 1, 2)), Knob("o", ("x", "y", "z")))))
    squares = RowTable.of(FeasibleSet.of(spaces)).squares().sum(axis=0)
    count = len(squares)
    centring = np.eye(count) - 1 / count
    gram = -0.5 * centring @ squares @ centring  # of the points, if there are any (Schoenberg)
    assert np.linalg.eigvalsh(gram).min() > -1e-6
    assert (np.diag(squares) == 0).all()
