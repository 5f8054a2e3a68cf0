import numpy as np
import pytest

from tuner.search.configurations import Pool


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
