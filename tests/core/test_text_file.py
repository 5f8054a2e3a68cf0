"""Text files of users: read whole, or refused by one line."""

import io
import sys
from pathlib import Path

import pytest

from tuner.core.errors import UsageError
from tuner.core.text_file import read_text, read_text_or_stdin


class Input:
    """Standard input that holds these bytes."""

    def __init__(self, content: bytes) -> None:
        self.buffer = io.BytesIO(content)


def test_a_file_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes("module {} // \u00fc\n".encode())
    assert read_text(tmp_path / "a", "MLIR text") == "module {} // \u00fc\n"
    assert read_text_or_stdin(tmp_path / "a", "MLIR text", 14 + 2) == "module {} // \u00fc\n"


def test_what_has_no_end_is_not_read_for_ever() -> None:
    with pytest.raises(UsageError, match=r"^/dev/zero: found more than 100 bytes, allowed 100$"):
        read_text(Path("/dev/zero"), "MLIR text", 100)


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("none", None, r"/none: found no readable file \(No such file or directory\), allowed MLIR text$"),
        (".", None, r": found no readable file \(Is a directory\), allowed MLIR text$"),
        ("binary", b"ab\xff", r"/binary: found a byte that is no UTF-8 at 2, allowed MLIR text$"),
    ],
)
def test_what_is_no_text_is_refused(tmp_path: Path, name: str, content: bytes | None, line: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=line):
        read_text(tmp_path / name, "MLIR text")


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Input(b"module {}"))
    assert read_text_or_stdin(Path("-"), "MLIR text") == "module {}"
    monkeypatch.setattr(sys, "stdin", Input(b"\xff"))
    with pytest.raises(UsageError, match=r"^standard input: found a byte that is no UTF-8 at 0, allowed PTX"):
        read_text_or_stdin(Path("-"), "PTX text")
    monkeypatch.setattr(sys, "stdin", Input(b"12345"))
    with pytest.raises(UsageError, match=r"^standard input: found more than 4 bytes, allowed 4$"):
        read_text_or_stdin(Path("-"), "PTX text", 4)
