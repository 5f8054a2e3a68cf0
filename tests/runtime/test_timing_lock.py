"""The lock of timing: between processes as between tuners, of cores, of one user, and until a budget ends."""

import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.forked import in_child
from tuner.runtime import timing_lock
from tuner.runtime.cpu import host
from tuner.runtime.timing_lock import LockWait, TimingLock

HOLD = """
import sys
from pathlib import Path
from tuner.runtime.timing_lock import TimingLock
with TimingLock("cpu", "tuner 7: matmul 8x8x8", folder=Path(sys.argv[1])).held():
    print("held", flush=True)
    sys.stdin.readline()
"""
NOBODY = 65534
Processes = list["subprocess.Popen[str]"]


@pytest.fixture
def holders() -> Iterator[Processes]:
    started: Processes = []
    yield started
    for process in started:
        process.kill()
        process.communicate()


def holder(folder: Path, started: Processes) -> "subprocess.Popen[str]":
    options, pipe = [sys.executable, "-c", HOLD, str(folder)], subprocess.PIPE
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(options, stdin=pipe, stdout=pipe, text=True, env=environment)
    started.append(process)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def is_free(folder: Path, device: str = "cpu") -> bool:
    """Returns whether the lock can be had without waiting."""
    gave_up: list[str] = []
    with TimingLock(device, "who looks", LockWait(print, gave_up.append, limit_s=0.0), folder).held():
        return not gave_up


def test_a_second_tuner_waits_and_reports_once_for_whom(tmp_path: Path, holders: Processes) -> None:
    other = holder(tmp_path, holders)
    reported: list[str] = []
    waits, asked = threading.Event(), threading.Event()

    def report(who: str) -> None:
        reported.append(who)
        waits.set()

    def release() -> None:
        waits.wait()
        asked.set()
        other.communicate("go on\n")

    releasing = threading.Thread(target=release)
    releasing.start()
    wait = LockWait(report)
    with TimingLock("cpu", "tuner 8: matmul 9x9x9", wait, tmp_path).held():
        assert asked.is_set()  # the other let go only after that
        assert b"tuner 8: matmul 9x9x9" in (tmp_path / "cpu.lock").read_bytes()
    releasing.join()
    assert reported == ["tuner 7: matmul 8x8x8"]
    assert wait.waited_s > 0


def test_who_takes_it_again_at_once_does_so_after_one_that_waits(tmp_path: Path) -> None:
    """A run whose candidates are compiled ahead left a second one nine trials of 117."""
    waits, order = threading.Event(), list[str]()

    def second() -> None:
        with TimingLock("cpu", "second", LockWait(lambda _who: waits.set()), tmp_path).held():
            order.append("second")

    waiting = threading.Thread(target=second)
    first = TimingLock("cpu", "first", LockWait(timing_lock.ignore_holder), tmp_path)
    with first.held():
        waiting.start()
        waits.wait()
    with first.held():
        order.append("first again")
    waiting.join()
    assert order == ["second", "first again"]


def test_each_gpu_has_a_lock_of_its_own_and_a_folder_that_takes_no_file_none(tmp_path: Path) -> None:
    reported: list[str] = []
    wait = LockWait(reported.append)
    with (
        TimingLock("0000:01:00.0", "one", wait, tmp_path).held(),
        TimingLock("0000:02:00.0", "two", wait, tmp_path).held(),
        TimingLock("cpu", "me", wait, tmp_path / "missing").held(),
    ):
        assert reported == []
        assert sorted(each.name for each in tmp_path.iterdir()) == ["0000-01-00.0.lock", "0000-02-00.0.lock"]
        assert not is_free(tmp_path, "0000:01:00.0")


def test_a_killed_tuner_holds_nothing_and_one_that_waits_long_enough_goes_on(
    tmp_path: Path, holders: Processes
) -> None:
    other, reported = holder(tmp_path, holders), list[str]()
    other.kill()
    other.communicate()
    with TimingLock("cpu", "me", LockWait(reported.append), tmp_path).held():
        assert reported == []
    other = holder(tmp_path, holders)
    wait = LockWait(reported.append, reported.append, limit_s=0.05)
    for _ in range(2):
        with TimingLock("cpu", "a call of a user", wait, tmp_path).held():
            assert other.poll() is None  # which still holds the lock
            assert b"a call of a user" not in (tmp_path / "cpu.lock").read_bytes()
    assert reported == ["tuner 7: matmul 8x8x8"] * 2  # at the beginning and at the end
    other.communicate("go on\n")
    assert is_free(tmp_path)


def test_of_a_stopped_holder_it_is_said_how_it_goes_on(tmp_path: Path, holders: Processes) -> None:
    """As after Ctrl-Z amid a timing."""
    other, reported = holder(tmp_path, holders), list[str]()
    LockWait(reported.append).report(f"process {other.pid}, matmul 8x8x8")
    other.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, other.pid, os.WSTOPPED | os.WNOWAIT)
    LockWait(reported.append).report(f"process {other.pid}, matmul 8x8x8")
    text = f"process {other.pid}, matmul 8x8x8"
    assert reported == [text, f"{text} (it is stopped: kill -CONT {other.pid})"]


# Cores: two threads of each, 0 with 4, 1 with 5, ...


@pytest.fixture
def cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for cpu in range(8):
        topology = tmp_path / "processors" / f"cpu{cpu}" / "topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(f"{cpu % 4},{cpu % 4 + 4}\n")
    monkeypatch.setattr(host, "SYSTEM_PROCESSORS", tmp_path / "processors")
    timing_lock.cores_of_mask.cache_clear()
    folder = tmp_path / "locks"
    folder.mkdir()
    return folder


@pytest.mark.parametrize(
    ("first", "second", "is_apart"),
    [
        ({0}, {1}, True),
        ({0, 1}, {2, 3}, True),
        ({0, 4}, {1, 5}, True),
        ({0, 2}, {1, 3}, True),
        ({0, 1}, {1, 2}, False),
        ({3}, {0, 1, 2, 3}, False),
        ({0}, {4}, False),  # hardware threads of one core
        ({1, 2}, {6, 7}, False),
    ],
)
def test_tuners_whose_processors_share_no_core_do_not_wait_for_one_another(
    cores: Path, monkeypatch: pytest.MonkeyPatch, first: set[int], second: set[int], is_apart: bool
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: first)
    with TimingLock("cpu", "first", folder=cores).held():
        monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: second)
        assert is_free(cores) == is_apart
    assert is_free(cores)


def test_a_mask_that_changes_is_followed_and_nothing_of_the_old_one_stays_locked(
    cores: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = TimingLock("cpu", "first", folder=cores)
    for mask, others in (({0, 1}, {2}), ({2}, {0, 1})):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _pid, mask=mask: mask)
        with lock.held():
            assert not is_free(cores)
            monkeypatch.setattr(os, "sched_getaffinity", lambda _pid, others=others: others)
            assert is_free(cores)


def test_one_that_gives_up_halfway_frees_the_cores_that_it_had(
    cores: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {2})
    with TimingLock("cpu", "first", folder=cores).held():
        monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {1, 2, 3})
        with TimingLock("cpu", "second", LockWait(print, limit_s=0.0), cores).held():
            monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {1, 3})
            assert is_free(cores)


# Whose the file is.


def test_only_its_user_can_open_the_file_whatever_the_umask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(timing_lock.FOLDER_VARIABLE)
    monkeypatch.setattr(timing_lock, "SHARED_FOLDERS", (str(tmp_path),))
    before = os.umask(0)
    try:
        with TimingLock("cpu", "me").held():
            folder = tmp_path / f"tuner-{os.geteuid()}"
            modes = [stat.S_IMODE(each.stat().st_mode) for each in (folder, folder / "cpu.lock")]
    finally:
        os.umask(before)
    assert modes == [0o700, 0o600]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_another_user_has_a_lock_of_their_own_and_cannot_hold_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(timing_lock.FOLDER_VARIABLE)
    shared = tmp_path.parent.parent  # of pytest, for this user alone: others get one that they can enter
    monkeypatch.setattr(timing_lock, "SHARED_FOLDERS", (str(shared / "shared"),))
    path = shared / "shared"
    path.mkdir(exist_ok=True)
    for each in (path, *[parent for parent in path.parents if str(parent) not in ("/", "/tmp")]):
        each.chmod(0o1777 if each == path else each.stat().st_mode | 0o011)

    def as_another_user() -> bool:
        os.setuid(NOBODY)
        gave_up: list[str] = []
        with TimingLock("cpu", "another", LockWait(print, gave_up.append, limit_s=0.0)).held():
            has_own = (path / f"tuner-{NOBODY}" / "cpu.lock").exists()
        try:
            os.open(path / "tuner-0" / "cpu.lock", os.O_RDONLY)
        except PermissionError:
            return has_own and not gave_up
        return False

    with TimingLock("cpu", "root").held():
        assert in_child(as_another_user)


@pytest.mark.parametrize("trap", ["of another user", "writable by others", "link", "file", "link in it"])
def test_a_folder_that_somebody_else_prepared_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trap: str
) -> None:
    """Otherwise they could hold the lock, or have a file of this user written."""
    monkeypatch.delenv(timing_lock.FOLDER_VARIABLE)
    first, second, target = (tmp_path / name for name in ("first", "second", "target"))
    for each in (first, second, target):
        each.mkdir()
    monkeypatch.setattr(timing_lock, "SHARED_FOLDERS", (str(first), str(second)))
    name = f"tuner-{os.geteuid()}"
    if trap == "link":
        (first / name).symlink_to(target)
    elif trap == "file":
        (first / name).write_text("")
    else:
        (first / name).mkdir()
    if trap == "writable by others":
        (first / name).chmod(0o777)
    elif trap == "link in it":
        (first / name / "cpu.lock").symlink_to(target / "victim")
    elif trap == "of another user":
        if os.geteuid() != 0:
            pytest.skip("only root can make a folder of another user")
        os.chown(first / name, NOBODY, NOBODY)
    with TimingLock("cpu", "me").held():
        assert (second / name / "cpu.lock").exists()
    assert list(target.iterdir()) == []


def test_two_tuners_agree_on_the_folder_whatever_their_environment_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(timing_lock.FOLDER_VARIABLE)
    assert timing_lock.SHARED_FOLDERS[0] == "/tmp"
    monkeypatch.setattr(timing_lock, "SHARED_FOLDERS", (str(tmp_path),))
    folders = []
    for variables in ({"TMPDIR": "/missing"}, {"TMPDIR": str(tmp_path), "HOME": "/nowhere"}, {}):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        folders.append(next(timing_lock.lock_folders()))
    monkeypatch.delenv("HOME")
    assert {*folders, next(timing_lock.lock_folders())} == {tmp_path / f"tuner-{os.geteuid()}"}


def test_without_shared_folders_the_users_cache_has_it_by_machine_and_without_that_there_is_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(timing_lock.FOLDER_VARIABLE)
    monkeypatch.setattr(timing_lock, "SHARED_FOLDERS", (str(tmp_path / "missing"),))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with TimingLock("cpu", "me").held():
        (found,) = (tmp_path / "cache" / "tuner").glob("timing-*/cpu.lock")
    assert os.uname().nodename in str(found)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with TimingLock("cpu", "me").held():
        assert timing_lock.opened_lock_file("cpu") is None


def test_a_forked_process_keeps_no_core_locked(tmp_path: Path) -> None:
    held, go_on = os.pipe(), os.pipe()
    with TimingLock("cpu", "me", folder=tmp_path).held():
        child = os.fork()
        if not child:
            os.write(held[1], b".")
            os.read(go_on[0], 1)
            os._exit(0)
        os.read(held[0], 1)
    assert is_free(tmp_path)
    os.write(go_on[1], b".")
    os.waitpid(child, 0)


# Until when.


def test_waiting_is_counted_and_ends_when_it_is_told_to() -> None:
    now_s = [100.0]
    wait = LockWait(print, clock=lambda: now_s[0])
    assert not wait.is_over
    wait.end_in(5.0)
    with wait.counted():
        now_s[0] += 4.0
    assert (wait.waited_s, wait.is_over) == (4.0, False)
    with wait.counted():
        now_s[0] += 1.0
    assert (wait.waited_s, wait.is_over) == (5.0, True)
    assert LockWait(print, limit_s=0.0).is_over


def test_a_command_without_progress_says_whom_it_waits_for(capfd: pytest.CaptureFixture[str]) -> None:
    program = "from tuner.runtime.timing_lock import LockWait; LockWait().report('process 7, matmul')"
    subprocess.run([sys.executable, "-c", program], check=True)
    assert capfd.readouterr().err == "waiting for process 7, matmul: it times on the same device\n"
