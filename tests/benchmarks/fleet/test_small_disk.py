import os
import shutil
import subprocess
from pathlib import Path

import pytest

from benchmarks.fleet.small_disk import fill_disk, small_disk
from tuner.core.errors import TunerError

DISK_KIB = 64


def test_a_disk_of_one_process_is_filled_and_no_other_process_sees_it(tmp_path: Path) -> None:
    try:
        before = small_disk(tmp_path, DISK_KIB)
    except TunerError as error:
        pytest.skip(str(error))
    with subprocess.Popen(
        [*before, "sh", "-c", "echo; read _; cp $0/all $0/more", tmp_path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()  # the disk is there
        fill_disk(process.pid, tmp_path)
        used = os.statvfs(f"/proc/{process.pid}/root{tmp_path}")
        assert (used.f_bavail, used.f_blocks * used.f_frsize) == (0, DISK_KIB << 10)
        _, said = process.communicate(b"\n")
    assert b"No space left on device" in said
    assert list(tmp_path.iterdir()) == []


def test_a_machine_without_unshare_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    with pytest.raises(TunerError, match=r"^small disk: found no unshare, which gives a process"):
        small_disk(tmp_path, DISK_KIB)


def test_a_disk_that_may_not_be_mounted_says_why(tmp_path: Path) -> None:
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare")
    with pytest.raises(TunerError, match=r"^small disk: found no leave to mount one: .*absent"):
        small_disk(tmp_path / "absent", DISK_KIB)
