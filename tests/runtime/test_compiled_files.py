"""Compiled files are read as they were written, by the same user and tuner, under their key, or not."""

import os
from pathlib import Path

import pytest

from tuner.runtime import compiled_files as module
from tuner.runtime.compiled_files import CompiledFiles

VALUE = ("code", b"\x00" * 1000, (1, 2.5))
KEY = CompiledFiles.key("fusion", "text", 1)


def test_what_is_written_is_read_by_its_key_alone(tmp_path: Path) -> None:
    files = CompiledFiles(tmp_path / "not there yet")
    assert files.read(KEY) is None
    files.write(KEY, VALUE)
    assert CompiledFiles(files.folder).read(KEY) == VALUE
    assert [each.name for each in files.folder.iterdir()] == [KEY]
    for parts in (("fusion", "text", 2), ("fusion", "text"), ("fusion", "text", "1"), ("fusiontext", 1)):
        assert files.read(CompiledFiles.key(*parts)) is None


def test_another_tuner_compiler_or_python_has_other_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {KEY}
    changes = {
        "sources_sha256": lambda _sources: "other",
        "packages": lambda: (("torch-mlir", "1"),),
        "platform.python_version": lambda: "4.0",
        "np.__version__": "3.0",
    }
    for name, other in changes.items():
        with monkeypatch.context() as patch:
            patch.setattr(f"{module.__name__}.{name}", other)
            module._compilers.cache_clear()  # noqa: SLF001 - it is computed once in a process
            keys.add(CompiledFiles.key("fusion", "text", 1))
    module._compilers.cache_clear()  # noqa: SLF001
    assert len(keys) == 1 + len(changes)
    assert CompiledFiles.key("fusion", "text", 1) == KEY


def test_damaged_renamed_and_foreign_files_are_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, made = CompiledFiles(tmp_path), []

    def make() -> object:
        made.append(1)
        return VALUE

    assert files.kept(KEY, make) == files.kept(KEY, make) == VALUE
    assert len(made) == 1
    whole = (tmp_path / KEY).read_bytes()
    flipped = bytearray(whole)
    flipped[-20] ^= 1
    for content in (b"", whole[:-1], whole[:40], whole + b"x", bytes(flipped), b"\x80\x04N."):
        (tmp_path / KEY).write_bytes(content)
        assert files.read(KEY) is None
        made.clear()
        assert files.kept(KEY, make) == VALUE
        assert (len(made), (tmp_path / KEY).read_bytes()) == (1, whole)
    other = CompiledFiles.key("another")
    (tmp_path / KEY).rename(tmp_path / other)
    assert files.read(other) is None
    (tmp_path / other).rename(tmp_path / KEY)
    monkeypatch.setattr(os, "getuid", lambda: os.geteuid() + 1)
    assert files.read(KEY) is None


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    files = CompiledFiles(tmp_path / "file" / "folder")
    files.write(KEY, VALUE)
    assert files.kept(KEY, lambda: VALUE) == VALUE
    assert files.read(KEY) is None


def test_files_that_were_not_read_for_longest_are_deleted_first(tmp_path: Path) -> None:
    files = CompiledFiles(tmp_path, limit_bytes=5000)
    keys = [CompiledFiles.key(number) for number in range(4)]
    for number, key in enumerate(keys):
        files.write(key, VALUE)
        os.utime(tmp_path / key, (number, number))
    files.prune()
    assert {each.name for each in tmp_path.iterdir()} == set(keys)
    assert files.read(keys[0]) == VALUE  # read last
    CompiledFiles(tmp_path, limit_bytes=3000).prune()
    assert {each.name for each in tmp_path.iterdir()} == {keys[0], keys[3]}
