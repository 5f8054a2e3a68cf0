"""Child processes: how they start, hear, stop and end."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.fakes import HANG_S, await_death, is_alive, state_of
from tests.runtime.workers.echo import spec_of
from tuner.core.errors import Stage
from tuner.runtime.workers import child_process
from tuner.runtime.workers.protocol import CallRequest, Message, Ready, Reply
from tuner.runtime.workers.worker import Worker

CHILD = [sys.executable, "-m", "tuner.runtime.workers.child"]


def started(*environment: tuple[str, str | None]) -> child_process.ChildProcess:
    child = child_process.ChildProcess(replace(spec_of("Echo"), environment=environment))
    assert isinstance(hear(child), Ready)
    return child


def hear(child: child_process.ChildProcess) -> Message:
    give_up = time.monotonic() + HANG_S
    while (message := child.receive()) is None:
        assert time.monotonic() < give_up
        child_process.sleep_until_news([child], 0.1)
    return message


def ask(child: child_process.ChildProcess, method: str, *args: object) -> object:
    child.send(CallRequest(method, args))
    reply = hear(child)
    assert isinstance(reply, Reply)
    return reply.value


@pytest.mark.parametrize(
    ("output", "line"),
    [
        ("", ""),
        ("one\n  two  \n\n", "two"),
        ("LLVM ERROR: Cannot select\n  t4: f32 = undef\nIn function: f\n", "LLVM ERROR: Cannot select"),
        ("a.cpp:7: f(): Assertion `x' failed.\n #0 0x1234\n", "a.cpp:7: f(): Assertion `x' failed."),
        ("<stdin>:1:2: error: no such op\nnote: see\n", "<stdin>:1:2: error: no such op"),
        ("bell \x07 here", "bell ? here"),
        ("x" * 1000, "x" * 300),
    ],
)
def test_the_line_that_reports_is_found(output: str, line: str) -> None:
    assert child_process.quoted_line(output) == line


def test_the_environment_is_the_parents_with_the_specs_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    monkeypatch.setenv("KEPT", "yes")
    child = started(("OPENBLAS_CORETYPE", None), ("OMP_NUM_THREADS", "3"))
    assert ask(child, "environment", ("OPENBLAS_CORETYPE", "OMP_NUM_THREADS", "KEPT")) == (None, "3", "yes")
    child.destroy()


def test_a_message_larger_than_the_pipe_crosses_in_both_directions() -> None:
    child = child_process.ChildProcess(spec_of("Echo"))
    large = os.urandom(5 << 20)
    child.send(CallRequest("echo", (large,)))  # before the child reads: must not block
    assert isinstance(hear(child), Ready)
    assert hear(child) == Reply(large)
    child.destroy()


def test_a_stopped_group_stands_still_and_goes_on() -> None:
    child = started()
    for _ in range(3):
        child.stop()
        assert state_of(child.pid) == "T"
        child.go_on()
    assert ask(child, "echo", 1) == 1
    child.stop()
    assert child.destroy() == "killed by SIGKILL"


def test_endless_output_is_cut_and_an_unnamed_signal_is_reported_by_its_number() -> None:
    child = started()
    ask(child, "shout", child_process.OUTPUT_LIMIT_BYTES // (1 << 20) + 1)
    child.cut_output()
    ask(child, "shout", 1)
    child.send(CallRequest("die", (signal.SIGTERM,)))
    while not child.has_ended:
        child_process.sleep_until_news([child], 0.1)
    assert child.destroy() == "killed by SIGTERM: " + "y" * 300
    child = started()
    os.kill(child.pid, 40)
    assert await_death([child.pid]) == []
    assert child.destroy() == "killed by signal 40"


def open_files() -> set[str]:
    return {entry.name for entry in Path("/proc/self/fd").iterdir()}


def test_destroying_reaps_and_closes_everything() -> None:
    before = open_files()
    child = child_process.ChildProcess(spec_of("Echo"))
    assert child.resident_bytes > 0
    child.destroy()
    assert state_of(child.pid) == ""
    assert open_files() <= before  # some of another test may be closed meanwhile
    assert child.resident_bytes == 0


LIGHT = """
import sys
import tuner.runtime.workers.child
heavy = {"numpy", "mlir", "numba_cuda_mlir", "optuna", "sqlalchemy", "click", "rich"}
sys.exit(", ".join(heavy & set(sys.modules)) or 0)
"""


def test_a_child_imports_nothing_heavy_before_its_service() -> None:
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, check=False)
    assert (done.stderr.strip(), done.returncode) == ("", 0)


def test_a_child_ends_where_its_parent_is_gone_or_closes_the_pipe() -> None:
    read_fd, write_fd = os.pipe()
    step_fd = os.memfd_create("step")
    arguments = [str(read_fd), str(write_fd), str(step_fd), "1", "token"]  # process 1 is not its parent
    child = subprocess.Popen([*CHILD, *arguments], pass_fds=(read_fd, write_fd, step_fd))
    assert child.wait(timeout=HANG_S) == -signal.SIGKILL
    os.close(read_fd)
    os.close(write_fd)
    to_child, from_parent = os.pipe()
    to_parent, from_child = os.pipe()
    arguments = [str(to_child), str(from_child), str(step_fd), str(os.getpid()), "token"]
    fds = (to_child, from_child, step_fd)
    child = subprocess.Popen([*CHILD, *arguments], pass_fds=fds, stderr=subprocess.DEVNULL)
    for fd in (to_child, from_parent, from_child, to_parent, step_fd):
        os.close(fd)
    assert child.wait(timeout=HANG_S) == 1  # it was given no service


def test_ctrl_c_is_not_the_childs() -> None:
    worker = Worker(spec_of("Echo"), 1 << 30)
    assert worker.call("echo", 1, stage=Stage.RUN, timeout_s=HANG_S) == 1
    assert worker.child is not None
    pid = worker.child.pid
    assert os.getpgid(pid) == pid != os.getpgid(0)
    os.kill(pid, signal.SIGINT)
    assert worker.call("echo", 2, stage=Stage.RUN, timeout_s=HANG_S) == 2
    assert worker.child.pid == pid
    worker.kill()


STARTING = """
import time
from tuner.runtime.workers.protocol import Factory, ServiceSpec
from tuner.runtime.workers.worker import Worker
worker = Worker(ServiceSpec("slow", Factory("time:sleep", (600.0,)), announces=True), 1 << 30)
worker.start()
print(worker.child.pid, flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_end_of_the_tuner_ends_a_child_that_is_still_starting(number: signal.Signals) -> None:
    parent = subprocess.Popen([sys.executable, "-c", STARTING], stdout=subprocess.PIPE, text=True)
    with parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        was_alive = is_alive(child)
        parent.send_signal(number)
    assert was_alive
    assert await_death([child]) == []
