from itertools import pairwise

import numpy as np

from tests.search.tasks import grid, task, tell
from tuner.search.surrogates import FIT_GROWTH, Surrogate, _fit_rows
from tuner.search.task import SearchTask
from tuner.space.search_space import Knob, SearchSpace


def valley(task: SearchTask, row: int) -> float:
    a, b = (int(code) for code in task.table.codes[row])
    return 1.0 + (a - 5) ** 2 + 0.1 * b


def gain(task: SearchTask) -> np.ndarray:
    return Surrogate(task).log_gain(task.scope(np.random.default_rng(0)))


def given(rows: list[int]) -> SearchTask:
    square = task(grid("ab"))
    tell(square, *((row, valley(square, row)) for row in rows))
    return square


def test_the_gain_is_largest_in_the_valley() -> None:
    square = given([0, 9, 18, 27, 36, 60, 14, 5, 50, 33])
    best = np.argsort(-gain(square))[:5]
    assert all(square.table.codes[row][0] in (4, 5, 6) for row in best)


def test_what_a_power_of_two_divides_is_known_from_few_rows() -> None:
    steps = task(SearchSpace("s", (Knob("a", tuple(16 * rank for rank in range(1, 33))),)))
    tell(steps, *((row, 2.0 if row % 2 == 0 else 1.0 + row / 100) for row in (1, 4, 7, 10, 13, 16, 22, 25)))
    scope = steps.scope(np.random.default_rng(0))
    gains = Surrogate(steps).log_gain(scope)
    unseen_even, unseen_odd = [3, 5, 9, 11], [2, 6, 8, 12]  # rows: values are one more
    assert gains[unseen_even].mean() > gains[unseen_odd].mean() + 1


def test_pending_rows_are_not_chosen_next_to_it() -> None:
    free, busy = given([0, 9, 18, 27]), given([0, 9, 18, 27])
    best = int(np.argmax(gain(free)))
    busy.pool.propose(best)
    assert gain(busy)[best] < gain(free)[best] - 1


def test_the_order_of_reports_means_nothing_and_late_ones_are_heard() -> None:
    rows = [0, 9, 18, 27, 36, 60, 14, 5]
    early, late = given(rows), task(grid("ab"))
    for row in rows:
        late.pool.propose(row)
    surrogate = Surrogate(late)
    scope = late.scope(np.random.default_rng(0))
    for row in reversed(rows):
        surrogate.log_gain(scope)  # with less than all
        late.pool.tell(row, valley(late, row))
    assert (surrogate.log_gain(scope) == gain(early)).all()


def test_fits_come_less_and_less_often() -> None:
    fits = sorted({_fit_rows(count) for count in range(1, 300)})
    assert fits[:6] == [1, 2, 3, 4, 5, 6]
    assert all(after <= max(before + 1, before * FIT_GROWTH) for before, after in pairwise(fits))
    assert len(fits) < 40
