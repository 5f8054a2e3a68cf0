"""Files that commands write, whatever is at the place."""

import os
import stat
from pathlib import Path

import pytest

from tuner.core.errors import UsageError
from tuner.results.output.files import write_atomically, write_folder


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


# Several files of a command in one folder, whatever is at the place.


def test_a_missing_folder_is_made_and_other_files_stay(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "library"
    paths = write_folder(folder, {"a.mlir": b"a", "x86_64/f32.yaml": b"b"})
    assert [path.read_bytes() for path in paths] == [b"a", b"b"]
    assert write_folder(folder, {"a.mlir": b"c"}) == (folder / "a.mlir",)
    assert (folder / "a.mlir").read_bytes() == b"c"
    assert sorted(path.name for path in folder.iterdir()) == ["a.mlir", "x86_64"]


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "library.mlir"
    path.write_text("kept")
    with pytest.raises(UsageError, match=r"library.mlir: is a file, not a folder to write into"):
        write_folder(path, {"a.mlir": b"a"})
    assert path.read_text() == "kept"


def test_an_error_leaves_the_folder_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "a.mlir").write_text("old")
    with pytest.raises(UsageError, match="cannot be written: "):
        write_folder(tmp_path, {"a.mlir": b"new", "a.mlir/b.yaml": b"b"})
    assert [path.name for path in tmp_path.iterdir()] == ["a.mlir"]
    assert (tmp_path / "a.mlir").read_text() == "old"


def test_a_folder_that_cannot_be_made_is_one_line() -> None:
    with pytest.raises(UsageError, match="/proc/none/library: cannot be written: "):
        write_folder(Path("/proc/none/library"), {"a.mlir": b"a"})
