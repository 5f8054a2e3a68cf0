import pytest

from tuner.output.report.drawing import TICKS, powers_of_ten, round_numbers


@pytest.mark.parametrize("top", [1e-9, 0.7, 1.0, 42.0, 1e9])
def test_a_few_round_numbers_lie_below_the_top(top: float) -> None:
    numbers = round_numbers(top)
    assert numbers[0] == 0
    assert numbers[-1] < top
    assert TICKS / 2 < len(numbers) <= 2 * TICKS


def test_powers_of_ten_lie_between_both_ends() -> None:
    assert powers_of_ten(0.5, 200.0) == [1.0, 10.0, 100.0]
    assert powers_of_ten(1.0, 1.0) == [1.0]
    assert powers_of_ten(2.0, 9.0) == []
