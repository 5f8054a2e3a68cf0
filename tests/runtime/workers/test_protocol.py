import itertools
import pickle
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import PROBLEM, FakeTarget
from tuner.core.interfaces import FINAL_EFFORT, Effort
from tuner.core.problem import Matmul
from tuner.runtime.workers.processes import LONGEST_STEP_S, AvailableTime, run_command
from tuner.runtime.workers.protocol import (
    CALLS,
    LENGTH,
    CallRequest,
    Factory,
    Inbox,
    Limits,
    Message,
    Reply,
    encode,
)

MESSAGES = st.lists(
    st.one_of(
        st.builds(Reply, st.binary(max_size=200)),
        st.builds(CallRequest, st.text(max_size=9), st.tuples(st.integers())),
    ),
    max_size=5,
)


@given(MESSAGES, st.data())
def test_messages_arrive_whole_and_in_order_however_the_bytes_are_cut(
    messages: list[Message], data: st.DataObject
) -> None:
    stream = b"".join(encode(message) for message in messages)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    inbox, arrived = Inbox(), []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        inbox.add(stream[start:end])
        while (message := inbox.take()) is not None:
            arrived.append(message)
    assert arrived == messages


def test_garbage_is_no_message() -> None:
    inbox = Inbox()
    inbox.add(LENGTH.pack(7) + b"garbage")
    with pytest.raises(pickle.UnpicklingError, match="pickle data was truncated"):
        inbox.take()


def test_a_factory_builds_with_what_it_is_given_first() -> None:
    assert Factory("builtins:dict", (), (("a", 1),)).build() == {"a": 1}
    assert Factory("builtins:divmod", (3,)).build(17) == (5, 2)
    assert isinstance(Factory("tests.fakes:FakeTarget").build(), FakeTarget)


@pytest.mark.parametrize("path", ["", "tests.fakes", ":FakeTarget", "tests.fakes:"])
def test_a_factory_names_module_and_callable(path: str) -> None:
    with pytest.raises(ValueError, match=r"factory: found '.*', allowed 'module:callable'"):
        Factory(path)


# Limits of time and memory: they follow the work, and count only time in which the process could run.

EFFORT = Effort(budget_s=0.1)


def test_the_limit_follows_the_expected_time() -> None:
    limits = Limits(evaluation_timeout_s=10.0)
    quick = limits.evaluation_limit_s(PROBLEM, EFFORT, call_s=1e-6)
    slow = limits.evaluation_limit_s(PROBLEM, EFFORT, call_s=2.0)
    assert quick == pytest.approx(10.4, abs=0.01)
    assert slow - quick == pytest.approx(2.0 * CALLS, abs=0.01)


def test_without_an_incumbent_the_limit_follows_the_size() -> None:
    small = Limits().evaluation_limit_s(PROBLEM, EFFORT, None)
    large = Limits().evaluation_limit_s(Matmul(1024, 1024, 1024), EFFORT, None)
    assert large - small == pytest.approx(1024**3 * 2 / 1e9 * CALLS + 1024**3 * 2 / 5e9, rel=0.01)


def test_remeasurement_have_the_time_of_all_of_them() -> None:
    alone = Limits().evaluation_limit_s(PROBLEM, EFFORT, 0.5)
    one = Limits().remeasurement_limit_s(PROBLEM, EFFORT, 0.5, participants=1)
    eight = Limits().remeasurement_limit_s(PROBLEM, EFFORT, 0.5, participants=8)
    assert one >= alone
    assert eight - one == pytest.approx(7 * (one - Limits().evaluation_timeout_s), rel=1e-3)


def test_remeasurement_have_time_to_compare_results_of_a_large_problem_on_a_busy_machine() -> None:
    """Of 1003x701x331 a comparison takes 22 ms on a quiet core: two of them with each sample of 8 ms."""
    problem, participants = Matmul(1003, 701, 331, layout="nt"), 10
    rounds = FINAL_EFFORT.budget_s / (2 * 8e-3)
    quiet_s = participants * rounds * 2 * (8e-3 + 22e-3)
    within_s = Limits().remeasurement_limit_s(problem, FINAL_EFFORT, 8e-3, participants)
    assert within_s > 3 * quiet_s
    assert Limits().remeasurement_limit_s(PROBLEM, FINAL_EFFORT, 1e-6, participants) < 30


def test_a_faster_machine_is_given_less_time() -> None:
    large = Matmul(1024, 1024, 1024)
    plain, quick = Limits(), Limits(slowest_flop_per_s=1e11, calls=60)
    saved_s = plain.evaluation_limit_s(large, EFFORT, None) - quick.evaluation_limit_s(large, EFFORT, None)
    assert saved_s == pytest.approx(large.flop * (CALLS / 1e9 - 60 / 1e11))


@pytest.mark.parametrize(
    "name", ["compile_timeout_s", "evaluation_timeout_s", "memory_bytes", "slowest_flop_per_s", "calls"]
)
def test_a_limit_of_nothing_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=rf"limits: found .*{name}=0.*, allowed positive numbers"):
        Limits(**{name: 0})


STEPS_S = st.lists(st.floats(0.0, 2 * LONGEST_STEP_S) | st.floats(1.0, 1e5), min_size=1, max_size=30)


@given(STEPS_S)
def test_short_steps_count_and_of_a_pause_almost_nothing(steps_s: list[float]) -> None:
    moments_s = itertools.accumulate(steps_s, initial=7.0)
    clock = AvailableTime(lambda: next(moments_s))
    counted_s = itertools.accumulate(min(step_s, LONGEST_STEP_S) for step_s in steps_s)
    assert [clock() for _ in steps_s] == pytest.approx(list(counted_s))


def test_a_command_is_not_ended_for_a_pause(tmp_path: Path) -> None:
    looks = itertools.count()

    def clock() -> float:
        """Goes on by a thousand seconds with each look; the command ends after the third."""
        number = next(looks)
        if number == 3:
            (tmp_path / "go").touch()
        return 1000.0 * number

    script = f"until [ -e {tmp_path}/go ]; do sleep 0.01; done; echo done; echo why >&2; exit 3"
    done = run_command(["sh", "-c", script], 60.0, clock)
    assert (done.returncode, done.stdout, done.stderr) == (3, "done\n", "why\n")


def test_a_command_that_hangs_is_ended() -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        run_command(["sleep", "1000"], 0.1)
