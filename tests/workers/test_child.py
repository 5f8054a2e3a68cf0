import os
import signal
import subprocess
import sys

import pytest

from tests.fakes import HANG_S, await_death, is_alive
from tuner.core.errors import Stage
from tuner.workers.protocol import Factory, ServiceSpec
from tuner.workers.worker import Worker

LIGHT = """
import sys
import tuner.workers.child
heavy = {"numpy", "mlir", "numba_cuda_mlir", "optuna", "sqlalchemy", "pydantic", "click", "rich"}
sys.exit(", ".join(heavy & set(sys.modules)) or 0)
"""


def test_a_child_imports_nothing_heavy_before_its_service() -> None:
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, check=False)
    assert (done.stderr.strip(), done.returncode) == ("", 0)


def test_a_child_whose_parent_is_gone_already_ends() -> None:
    read_fd, write_fd = os.pipe()
    arguments = [str(read_fd), str(write_fd), "1", "token"]  # process 1 is not its parent
    child = subprocess.Popen(
        [sys.executable, "-m", "tuner.workers.child", *arguments], pass_fds=(read_fd, write_fd)
    )
    assert child.wait(timeout=HANG_S) == -signal.SIGKILL
    os.close(read_fd)
    os.close(write_fd)


def test_a_child_ends_when_the_parent_closes_the_pipe() -> None:
    to_child, from_parent = os.pipe()
    to_parent, from_child = os.pipe()
    arguments = [str(to_child), str(from_child), str(os.getpid()), "token"]
    child = subprocess.Popen(
        [sys.executable, "-m", "tuner.workers.child", *arguments],
        pass_fds=(to_child, from_child),
        stderr=subprocess.DEVNULL,
    )
    for fd in (to_child, from_parent, from_child, to_parent):
        os.close(fd)
    assert child.wait(timeout=HANG_S) == 1  # it was given no service


def test_ctrl_c_is_not_the_childs() -> None:
    worker = Worker(ServiceSpec("echo", Factory("tests.workers.echo:Echo")), 1 << 30)
    worker.submit("echo", 1, stage=Stage.RUN, timeout_s=HANG_S)
    worker.wait()
    assert worker.child is not None
    pid = worker.child.pid
    assert os.getpgid(pid) == pid != os.getpgid(0)
    os.kill(pid, signal.SIGINT)
    worker.submit("echo", 2, stage=Stage.RUN, timeout_s=HANG_S)
    worker.wait()
    assert worker.child.pid == pid
    worker.kill()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_end_of_the_tuner_ends_a_child_that_is_still_starting(number: signal.Signals) -> None:
    code = (
        "import time\n"
        "from tuner.workers.protocol import Factory, ServiceSpec\n"
        "from tuner.workers.worker import Worker\n"
        "worker = Worker(ServiceSpec('slow', Factory('tests.fakes:_sleep')), 1 << 30)\n"
        "worker.start()\n"
        "print(worker.child.pid, flush=True)\n"
        "time.sleep(1000)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    with parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        was_alive = is_alive(child)
        parent.send_signal(number)
    assert was_alive
    assert await_death([child]) == []
