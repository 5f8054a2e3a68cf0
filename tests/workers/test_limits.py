import pytest

from tests.fakes import PROBLEM
from tuner.core.problem import Matmul
from tuner.core.target import Effort
from tuner.workers.limits import CALLS, Limits

EFFORT = Effort(budget_s=0.1)


def test_the_limit_follows_the_expected_time() -> None:
    limits = Limits(judge_timeout_s=10.0)
    quick = limits.judge_within_s(PROBLEM, EFFORT, call_s=1e-6)
    slow = limits.judge_within_s(PROBLEM, EFFORT, call_s=2.0)
    assert quick == pytest.approx(10.4, abs=0.01)
    assert slow - quick == pytest.approx(2.0 * CALLS, abs=0.01)


def test_without_an_incumbent_the_limit_follows_the_size() -> None:
    small = Limits().judge_within_s(PROBLEM, EFFORT, None)
    large = Limits().judge_within_s(Matmul(1024, 1024, 1024), EFFORT, None)
    assert large - small == pytest.approx(1024**3 * 2 / 1e9 * CALLS + 1024**3 * 2 / 5e9, rel=0.01)


def test_finals_have_the_time_of_all_of_them() -> None:
    one = Limits().judge_within_s(PROBLEM, EFFORT, 0.5)
    eight = Limits().judge_within_s(PROBLEM, EFFORT, 0.5, artifacts=8)
    assert eight - one == pytest.approx(7 * (0.5 * CALLS + 0.4))


def test_a_faster_machine_is_given_less_time() -> None:
    large = Matmul(1024, 1024, 1024)
    plain, quick = Limits(), Limits(slowest_flop_per_s=1e11, calls=60)
    saved_s = plain.judge_within_s(large, EFFORT, None) - quick.judge_within_s(large, EFFORT, None)
    assert saved_s == pytest.approx(large.flop * (CALLS / 1e9 - 60 / 1e11))


@pytest.mark.parametrize(
    "name", ["compile_timeout_s", "judge_timeout_s", "memory_bytes", "slowest_flop_per_s", "calls"]
)
def test_a_limit_of_nothing_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=rf"limits: found .*{name}=0.*, allowed positive numbers"):
        Limits(**{name: 0})
