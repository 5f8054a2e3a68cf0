"""Files that commands write, whatever is at the place."""

import os
import stat
from pathlib import Path

import pytest

from tuner.core.errors import UsageError
from tuner.results.output.files import write_atomically


def test_a_file_is_written_whole_and_readable(tmp_path: Path) -> None:
    path = tmp_path / "best.mlir"
    path.write_text("old")
    write_atomically(path, b"new")
    assert path.read_text() == "new"
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    link, path = tmp_path / "link", tmp_path / "path"
    path.write_text("old")
    link.symlink_to(path)
    write_atomically(link, b"new")
    assert link.is_symlink()
    assert path.read_text() == "new"


def test_a_device_is_written_to_and_not_replaced() -> None:
    write_atomically(Path("/dev/null"), b"new")
    assert not Path("/dev/null").is_file()


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        (lambda folder: folder / "none" / "best.mlir", "No such file or directory"),
        (lambda folder: Path("/proc/best.mlir"), "cannot be written"),
        (lambda folder: Path("/dev/full"), "No space left on device"),
        (lambda folder: folder, "Is a directory"),
    ],
)
def test_a_place_that_cannot_be_written_is_named(place: object, reason: str, tmp_path: Path) -> None:
    path = place(tmp_path)  # type: ignore[operator]
    with pytest.raises(UsageError, match=f"{path}: cannot be written") as found:
        write_atomically(path, b"new")
    assert reason in str(found.value)
    assert list(tmp_path.iterdir()) == []
