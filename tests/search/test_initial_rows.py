import numpy as np

from tests.search.tasks import grid, line, task, tell
from tuner.search.task import START_ROWS, is_starting, start_row


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
