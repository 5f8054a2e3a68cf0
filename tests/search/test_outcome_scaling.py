import pytest

from tests.search.tasks import line, task, tell
from tuner.search.gaussian_process import rows_to_model, standardized


def test_logarithms_have_mean_zero_and_deviation_one() -> None:
    one = task(line(8))
    tell(one, (0, 1.0), (1, 2.0), (2, 3.0), (3, 40.0))
    values = standardized(one.pool, [0, 1, 2, 3])
    assert values.mean() == pytest.approx(0)
    assert values.std() == pytest.approx(1)
    assert values[0] < values[1] < values[2] == values[3]  # how slow a slow row is, matters little


def test_failures_and_pending_rows_count_as_slow() -> None:
    one = task(line(8))
    tell(one, (0, 1.0), (1, 2.0), (2, 3.0), (3, None))
    one.pool.propose(4)
    values = standardized(one.pool, [0, 1, 2, 3, 4])
    assert values[2] == values[3] == values[4] == values.max()


@pytest.mark.parametrize("value", [None, 0.0, 2.0])
def test_equal_outcomes_say_nothing(value: float | None) -> None:
    one = task(line(8))
    tell(one, (0, value), (1, value))
    assert standardized(one.pool, [0, 1]).tolist() == [0, 0]


def test_a_time_of_zero_is_faster_than_any_other() -> None:
    one = task(line(8))
    tell(one, (0, 0.0), (1, 1e-9), (2, 1.0), (3, 1.0))
    values = standardized(one.pool, [0, 1, 2, 3])
    assert values[0] < values[1] < values[2]


def test_of_many_rows_the_fastest_and_the_latest_are_modelled() -> None:
    one = task(line(20))
    tell(one, *((row, 1.0 + (row * 7) % 20) for row in range(12)))
    assert rows_to_model(one.pool, 12, 12) == list(range(12))
    assert rows_to_model(one.pool, 12, 4) == [0, 3, 10, 11]  # 1 + 0 and 1 + 1; the last two
    assert rows_to_model(one.pool, 5, 4) == [0, 3, 4]
