"""Messages, processes and locks of files between processes, limits of time and memory."""

import fcntl
import itertools
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import HANG_S, PROBLEM, FakeTarget, await_death
from tests.forked import in_child
from tuner.core.errors import UsageError
from tuner.core.interfaces import FINAL_EFFORT, Effort
from tuner.core.matmul import Matmul
from tuner.runtime.workers import processes, protocol
from tuner.runtime.workers.limits import CALLS, Limits


def opened(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def test_a_forked_process_keeps_no_file_locked(tmp_path: Path) -> None:
    """The lock is its parent's alone: it ends with the parent, and the process itself can wait for it."""
    path, are_ready, go_on = tmp_path / "lock", os.pipe(), os.pipe()
    descriptor = opened(path)
    with processes.owned_lock_file(descriptor):
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        child = os.fork()
        if not child:
            os.write(are_ready[1], b".")
            os.read(go_on[0], 1)
            os._exit(0)
        os.read(are_ready[0], 1)
        other = opened(path)
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(descriptor)  # as the end of this process would, without a release
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(go_on[1], b".")
        os.waitpid(child, 0)
        os.dup2(other, descriptor)  # for the end of the block
    os.close(other)


def test_a_lock_ends_with_its_block_whoever_has_the_file_and_forked_ones_leave_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    descriptor = opened(path)
    copy = os.dup(descriptor)  # as in a process that was not forked by Python
    with processes.owned_lock_file(descriptor):
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    other = opened(path)
    fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(copy)
    os.close(other)

    def leave() -> bool:
        with processes.owned_lock_file(os.dup(2)):
            return True

    with processes.owned_lock_file(os.dup(2)):
        assert in_child(leave)


SLEEP = "import time; time.sleep(1000)"

# Starts a process that leaves its session and its parent, as a daemon does, prints its id and goes on.
DAEMON = f"""
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.write(1, f"{{os.getpid()}}\\n".encode())
        time.sleep(1000)
    os._exit(0)
os.wait()
{SLEEP}
"""
Processes = list[subprocess.Popen[bytes]]


@pytest.fixture
def running() -> Iterator[Processes]:
    started: Processes = []
    yield started
    for process in started:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def start(running: Processes, code: str, token: str) -> tuple[int, int]:
    """Starts a process; returns its id, and the one that it prints."""
    environment = {**os.environ, processes.VARIABLE: token}
    process = subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE)
    running.append(process)
    assert process.stdout is not None
    return process.pid, int(process.stdout.readline())


def test_a_process_that_left_its_parent_and_its_session_is_found_and_ended(running: Processes) -> None:
    parent, daemon = start(running, DAEMON, "one of these tests")
    assert daemon in processes.started_by(parent, "one of these tests")
    assert processes.end_all(parent, "one of these tests") >= 1
    assert await_death([daemon]) == []
    assert running[0].poll() is None


def test_a_child_of_another_token_is_left_alone(running: Processes) -> None:
    code = f"""
import os, subprocess, sys
environment = {{**os.environ, {processes.VARIABLE!r}: "its own"}}
child = subprocess.Popen([sys.executable, "-c", {SLEEP!r}], env=environment)
print(child.pid, flush=True)
child.wait()
"""
    parent, child = start(running, code, "another of these tests")
    give_up = time.monotonic() + HANG_S
    while processes.started_by(parent, "another of these tests") and time.monotonic() < give_up:
        time.sleep(0.01)  # until it is a program with variables of its own
    assert processes.end_all(parent, "another of these tests") == 0
    assert processes.state_of(child) not in ("", "Z")
    os.kill(child, 9)


def test_a_process_that_is_no_more_has_no_state_and_one_without_children_has_none() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert processes.state_of(process.pid) == ""
    code = "from tuner.runtime.workers.processes import has_children; print(int(has_children()))"
    parent = f"import subprocess, sys; c = subprocess.Popen([sys.executable, '-c', '']); {code}; c.wait()"
    for program, number in ((code, "0\n"), (parent, "1\n")):
        assert subprocess.check_output([sys.executable, "-c", program], text=True) == number


# Messages, factories and limits.

REPLIES = st.builds(protocol.Reply, st.binary(max_size=200))
REQUESTS = st.builds(protocol.CallRequest, st.text(max_size=9), st.tuples(st.integers()))


@given(st.lists(REPLIES | REQUESTS, max_size=5), st.data())
def test_messages_arrive_whole_and_in_order(messages: list[protocol.Message], data: st.DataObject) -> None:
    stream = b"".join(protocol.encode(message) for message in messages)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    inbox, arrived = protocol.Inbox(), []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        inbox.add(stream[start:end])
        while (message := inbox.take()) is not None:
            arrived.append(message)
    assert arrived == messages


def test_garbage_is_no_message_and_a_factory_builds_with_what_it_is_given_first() -> None:
    inbox = protocol.Inbox()
    inbox.add(protocol.LENGTH.pack(7) + b"garbage")
    with pytest.raises(pickle.UnpicklingError, match="pickle data was truncated"):
        inbox.take()
    assert protocol.Factory("builtins:dict", (), (("a", 1),)).build() == {"a": 1}
    assert protocol.Factory("builtins:divmod", (3,)).build(17) == (5, 2)
    assert isinstance(protocol.Factory("tests.fakes:FakeTarget").build(), FakeTarget)
    for path in ("", "tests.fakes", ":FakeTarget", "tests.fakes:"):
        with pytest.raises(ValueError, match=r"factory: found '.*', allowed 'module:callable'"):
            protocol.Factory(path)


# Limits of time and memory: they follow the work, and count only time in which the process could run.

EFFORT = Effort(budget_s=0.1)


def test_the_limit_follows_the_expected_time_or_size_and_the_machine_and_is_not_nothing() -> None:
    limits, large = Limits(evaluation_timeout_s=10.0), Matmul(1024, 1024, 1024)
    quick, slow = (limits.evaluation_limit_s(PROBLEM, EFFORT, call_s) for call_s in (1e-6, 2.0))
    assert quick == pytest.approx(10.4, abs=0.01)
    assert slow - quick == pytest.approx(2.0 * CALLS, abs=0.01)
    usual = Limits()
    of_small, of_large = (usual.evaluation_limit_s(each, EFFORT, None) for each in (PROBLEM, large))
    expected_s = 1024**3 * 2 / 1e9 * CALLS + 1024**3 * 2 / 5e9
    assert of_large - of_small == pytest.approx(expected_s, rel=0.01)
    faster = Limits(slowest_flop_per_s=1e11, calls=60)
    saved_s = of_large - faster.evaluation_limit_s(large, EFFORT, None)
    assert saved_s == pytest.approx(large.flop * (CALLS / 1e9 - 60 / 1e11))
    one, eight = (usual.remeasurement_limit_s(PROBLEM, EFFORT, 0.5, participants) for participants in (1, 8))
    assert one >= usual.evaluation_limit_s(PROBLEM, EFFORT, 0.5)
    assert eight - one == pytest.approx(7 * (one - usual.evaluation_timeout_s), rel=1e-3)
    # of 1003x701x331 a comparison takes 22 ms on a quiet core: two of them with each sample of 8 ms
    problem, participants = Matmul(1003, 701, 331, layout="nt"), 10
    rounds = FINAL_EFFORT.budget_s / (2 * 8e-3)
    quiet_s = participants * rounds * 2 * (8e-3 + 22e-3)
    assert usual.remeasurement_limit_s(problem, FINAL_EFFORT, 8e-3, participants) > 3 * quiet_s
    assert usual.remeasurement_limit_s(PROBLEM, FINAL_EFFORT, 1e-6, participants) < 30
    for name in ("compile_timeout_s", "evaluation_timeout_s", "memory_bytes", "slowest_flop_per_s", "calls"):
        with pytest.raises(ValueError, match=rf"limits: found .*{name}=0.*, allowed positive numbers"):
            Limits(**{name: 0})


STEP_S = st.floats(0.0, 2 * processes.LONGEST_STEP_S) | st.floats(1.0, 1e5)


@given(st.lists(STEP_S, min_size=1, max_size=30))
def test_short_steps_count_and_of_a_pause_almost_nothing(steps_s: list[float]) -> None:
    moments_s = itertools.accumulate(steps_s, initial=7.0)
    clock = processes.AvailableTime(lambda: next(moments_s))
    counted_s = itertools.accumulate(min(step_s, processes.LONGEST_STEP_S) for step_s in steps_s)
    assert [clock() for _ in steps_s] == pytest.approx(list(counted_s))


def test_a_command_is_not_ended_for_a_pause_but_where_it_hangs(tmp_path: Path) -> None:
    looks = itertools.count()

    def clock() -> float:
        """Goes on by a thousand seconds with each look; the command ends after the third."""
        number = next(looks)
        if number == 3:
            (tmp_path / "go").touch()
        return 1000.0 * number

    script = f"until [ -e {tmp_path}/go ]; do sleep 0.01; done; echo done; echo why >&2; exit 3"
    done = processes.run_command(["sh", "-c", script], 60.0, clock)
    assert (done.returncode, done.stdout, done.stderr) == (3, "done\n", "why\n")
    with pytest.raises(subprocess.TimeoutExpired):
        processes.run_command(["sleep", "1000"], 0.1)


def test_a_factor_of_the_environment_multiplies_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(processes.FACTOR_VARIABLE, "2.5")
    assert processes.time_limit_factor() == 2.5
    with pytest.raises(subprocess.TimeoutExpired, match=r"timed out after 0\.25 seconds"):
        processes.run_command(["sleep", "1000"], 0.1)


@pytest.mark.parametrize("text", ["0.5", "0", "-3", "nan", "inf", "1001", "ten"])
def test_a_factor_that_is_no_number_from_1_to_1000_is_refused(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(processes.FACTOR_VARIABLE, text)
    refusal = rf"^TUNER_TIME_LIMIT_FACTOR: found '{text}', allowed a number from 1 to 1000"
    with pytest.raises(UsageError, match=refusal) as error:
        processes.time_limit_factor()
    assert error.value.hint == "unset TUNER_TIME_LIMIT_FACTOR"
