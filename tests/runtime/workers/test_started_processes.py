import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tests.fakes import HANG_S, await_death
from tuner.runtime.workers.processes import VARIABLE, end_all, started_by, state_of

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
