"""Several files of a command in one folder, whatever is at the place."""

from pathlib import Path

import pytest

from tuner.core.errors import UsageError
from tuner.results.output.files import write_folder


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
