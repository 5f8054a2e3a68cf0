"""Text of users, and packed text: read whole or refused by one line, shown without what does not print."""

import io
import json
import sys
import tracemalloc
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.errors import UsageError
from tuner.core.serialization import CONTROLS, printable, printable_lines, read_text, read_text_or_stdin
from tuner.fleet.work import inflate


class Input:
    """Standard input that holds these bytes."""

    def __init__(self, content: bytes) -> None:
        self.buffer = io.BytesIO(content)


def test_standard_input_that_is_closed_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    message = r"^standard input: cannot be read \(it is closed\), expected MLIR text$"
    with pytest.raises(UsageError, match=message):
        read_text_or_stdin(Path("-"), "MLIR text")


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
        ("none", None, r"/none: cannot be read \(No such file or directory\), expected MLIR text$"),
        (".", None, r": cannot be read \(Is a directory\), expected MLIR text$"),
        ("binary", b"ab\xff", r"/binary: not MLIR text: byte 2 is not UTF-8$"),
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
    with pytest.raises(UsageError, match=r"^standard input: not PTX text: byte 0 is not UTF-8"):
        read_text_or_stdin(Path("-"), "PTX text")
    monkeypatch.setattr(sys, "stdin", Input(b"12345"))
    with pytest.raises(UsageError, match=r"^standard input: found more than 4 bytes, allowed 4$"):
        read_text_or_stdin(Path("-"), "PTX text", 4)


@given(st.text())
def test_what_does_not_print_is_spelled_out(text: str) -> None:
    assert printable(text).isprintable()
    assert CONTROLS.search(printable_lines(text)) is None
    if text.isprintable():
        assert printable(text) == text


@given(st.text())
def test_json_stays_the_json_that_it_was(text: str) -> None:
    document = json.dumps({"name": text})
    assert json.loads(printable_lines(document)) == {"name": text}


@pytest.mark.parametrize("text", ["", "two\nlines\n", "a\ttab", "µ Ω 漢字 ✓"])
def test_lines_tabs_and_letters_stay(text: str) -> None:
    assert printable_lines(text) == text


MIB = 1 << 20


@given(st.binary(max_size=200), st.integers(0, 200))
def test_what_fits_comes_back_and_what_does_not_is_refused(content: bytes, limit: int) -> None:
    packed = zlib.compress(content)
    if len(content) <= limit:
        assert inflate(packed, limit) == content
    else:
        with pytest.raises(ValueError, match=f"found more than {limit} bytes once unpacked"):
            inflate(packed, limit)


@pytest.mark.parametrize(
    "packed", [b"", b"no zlib", zlib.compress(b"whole")[:-1], zlib.compress(b"") + b"more"]
)
def test_what_is_not_whole_is_refused(packed: bytes) -> None:
    with pytest.raises(ValueError, match="not zlib's format"):
        inflate(packed, 100)


@pytest.mark.slow
def test_a_bomb_takes_no_more_memory_than_the_limit() -> None:
    bomb = zlib.compress(bytes(64 * MIB))
    tracemalloc.start()
    with pytest.raises(ValueError, match="found more than"):
        inflate(bomb, MIB)
    assert tracemalloc.get_traced_memory()[1] < 4 * MIB
    tracemalloc.stop()
