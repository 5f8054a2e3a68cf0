"""The lock of timing, between processes as between tuners."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tuner.runtime.workers.processes import FOLDER, FOLDER_VARIABLE, TimingLock, lock_path

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
