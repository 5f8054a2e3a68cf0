"""Locks of files: a process that is forked inside of one has no part in it."""

import fcntl
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes import HANG_S, await_death
from tests.forked import in_child
from tuner.runtime.workers.processes import (
    FOLDER,
    FOLDER_VARIABLE,
    VARIABLE,
    TimingLock,
    end_all,
    file_lock,
    lock_path,
    started_by,
    state_of,
)


def opened(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def test_a_forked_process_keeps_no_file_locked(tmp_path: Path) -> None:
    """The lock is its parent's alone: it ends with the parent, and the process itself can wait for it."""
    path, are_ready, go_on = tmp_path / "lock", os.pipe(), os.pipe()
    descriptor = opened(path)
    with file_lock(descriptor):
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


def test_a_lock_ends_with_its_block_though_another_process_has_the_file(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    descriptor = opened(path)
    copy = os.dup(descriptor)  # as in a process that was not forked by Python
    with file_lock(descriptor):
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    other = opened(path)
    fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(copy)
    os.close(other)


def test_a_process_forked_inside_a_block_leaves_it() -> None:
    def leave() -> bool:
        with file_lock(os.dup(2)):
            return True

    with file_lock(os.dup(2)):
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


@pytest.fixture
def running() -> Iterator[list["subprocess.Popen[bytes]"]]:
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for process in started:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def start(code: str, token: str) -> "subprocess.Popen[bytes]":
    environment = {**os.environ, VARIABLE: token}
    return subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE)


def said(process: "subprocess.Popen[bytes]") -> int:
    assert process.stdout is not None
    return int(process.stdout.readline())


def test_a_process_that_left_its_parent_and_its_session_is_found_and_ended(
    running: list["subprocess.Popen[bytes]"],
) -> None:
    running.append(start(DAEMON, "one of these tests"))
    daemon = said(running[0])
    assert daemon in started_by(running[0].pid, "one of these tests")
    assert end_all(running[0].pid, "one of these tests") >= 1
    assert await_death([daemon]) == []
    assert running[0].poll() is None


def test_a_child_of_another_token_is_left_alone(running: list["subprocess.Popen[bytes]"]) -> None:
    code = f"""
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {SLEEP!r}], env={{**os.environ, {VARIABLE!r}: "its own"}})
print(child.pid, flush=True)
child.wait()
"""
    running.append(start(code, "another of these tests"))
    child = said(running[0])
    give_up = time.monotonic() + HANG_S
    while started_by(running[0].pid, "another of these tests") and time.monotonic() < give_up:
        time.sleep(0.01)  # until it is a program with variables of its own
    assert end_all(running[0].pid, "another of these tests") == 0
    assert state_of(child) not in ("", "Z")
    os.kill(child, 9)


def test_a_process_that_is_no_more_has_no_state() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert state_of(process.pid) == ""


def test_a_process_without_children_has_none() -> None:
    code = "from tuner.runtime.workers.processes import has_children; print(int(has_children()))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "0\n"
    parent = f"import subprocess, sys; c = subprocess.Popen([sys.executable, '-c', '']); {code}; c.wait()"
    found = subprocess.run([sys.executable, "-c", parent], capture_output=True, text=True, check=True)
    assert found.stdout == "1\n"


# The lock of timing, between processes as between tuners.

HOLD = """
import sys
from pathlib import Path
from tuner.runtime.workers.processes import TimingLock
with TimingLock("cpu", "tuner 7: matmul 8x8x8", folder=Path(sys.argv[1])).held():
    print("held", flush=True)
    sys.stdin.readline()
"""


def holder(folder: Path) -> "subprocess.Popen[str]":
    """Starts a process that holds the lock until a line comes."""
    options = [sys.executable, "-c", HOLD, str(folder)]
    process = subprocess.Popen(
        options,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_tuner_waits_and_says_once_for_whom(tmp_path: Path) -> None:
    other = holder(tmp_path)
    given: list[str] = []
    waits, asked = threading.Event(), threading.Event()

    def tell(who: str) -> None:
        given.append(who)
        waits.set()

    def release() -> None:
        waits.wait()
        asked.set()
        other.communicate("go on\n")

    releasing = threading.Thread(target=release)
    releasing.start()
    with TimingLock("cpu", "tuner 8: matmul 9x9x9", tell, tmp_path).held():
        assert asked.is_set()  # the other let go only after that
        assert next(tmp_path.iterdir()).read_text() == "tuner 8: matmul 9x9x9"
    releasing.join()
    assert given == ["tuner 7: matmul 8x8x8"]


def test_a_tuner_that_is_killed_holds_nothing(tmp_path: Path) -> None:
    other = holder(tmp_path)
    other.kill()
    other.communicate()
    given: list[str] = []
    with TimingLock("cpu", "me", given.append, tmp_path).held():
        pass
    assert given == []


def test_each_gpu_has_a_turn_of_its_own(tmp_path: Path) -> None:
    given: list[str] = []
    with (
        TimingLock("0000:01:00.0", "one", given.append, tmp_path).held(),
        TimingLock("0000:02:00.0", "two", given.append, tmp_path).held(),
    ):
        assert given == []
        assert len(list(tmp_path.iterdir())) == 2


def test_a_folder_that_takes_no_file_locks_nothing(tmp_path: Path) -> None:
    with TimingLock("cpu", "me", folder=tmp_path / "missing").held():
        assert list(tmp_path.iterdir()) == []


def test_a_tuner_with_a_limit_of_waiting_goes_on_without_the_lock(tmp_path: Path) -> None:
    other = holder(tmp_path)
    with TimingLock("cpu", "a call of a user", folder=tmp_path, limit_s=0.05).held():
        assert other.poll() is None  # which still holds the lock
        assert next(tmp_path.iterdir()).read_text() == "tuner 7: matmul 8x8x8"
    other.communicate("go on\n")


def test_the_folder_is_the_machines_unless_the_environment_names_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    with TimingLock("cpu", "me").held():
        assert [path.name for path in tmp_path.iterdir()] == ["tuner-timing-cpu.lock"]
    monkeypatch.delenv(FOLDER_VARIABLE)
    assert lock_path("cpu") == Path(FOLDER, "tuner-timing-cpu.lock")
