import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.gpu_check.budget import WEIGHTS, Budget

ALL = tuple(WEIGHTS)


@given(st.lists(st.floats(0.0, 1.5), min_size=len(ALL), max_size=len(ALL)), st.floats(1.0, 500.0))
def test_no_use_of_the_limits_takes_longer_than_all_seconds(used: list[float], total_s: float) -> None:
    budget, spent_s = Budget(ALL, total_s), 0.0
    for part, share in zip(ALL, used, strict=True):
        spent_s += min(share, 1.0) * budget.limit_s(part, spent_s)
    assert spent_s <= total_s * (1 + 1e-9)


def test_what_a_part_leaves_goes_to_the_others_by_their_weights() -> None:
    budget = Budget(ALL, 100.0)
    assert budget.limit_s("environment", 0.0) == pytest.approx(3.0)
    assert budget.limit_s("strategies", 3.0) == pytest.approx(20.0)
    assert budget.limit_s("tuning", 40.0) == pytest.approx(60.0)
    assert Budget(("tuning",), 50.0).limit_s("tuning", 0.0) == pytest.approx(50.0)


def test_when_all_is_spent_nothing_is_left() -> None:
    assert Budget(ALL, 10.0).limit_s("tuning", 11.0) == 0.0


def test_an_unknown_part_is_refused() -> None:
    with pytest.raises(ValueError, match="part: found 'speed', allowed environment, strategies"):
        Budget(("speed",))


def test_no_seconds_are_refused() -> None:
    with pytest.raises(ValueError, match="seconds: found 0, allowed more than 0"):
        Budget(ALL, 0.0)
