from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.terminal_recording import Typed, main, record, svg

SESSION = (Typed("tuner --version", "tuner 0.1.0\ncompiler: LLVM\n"), Typed("true", ""))


def options(picture: str) -> str:
    return "".join(ElementTree.fromstring(picture).itertext()).replace("\N{NO-BREAK SPACE}", " ")


def test_both_outputs_of_real_commands_are_recorded_in_one_folder(tmp_path: Path) -> None:
    session = record(("echo one > kept; echo two >&2", "cat kept"), tmp_path)
    assert [typed.printed for typed in session] == ["two\n", "one\n"]


def test_a_command_that_fails_ends_the_recording(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"^echo why; exit 3: exited with 3: why"):
        record(("echo why; exit 3",), tmp_path)


def test_the_picture_has_what_was_typed_and_printed() -> None:
    text = options(svg(SESSION))
    for line in ("$ tuner --version", "tuner 0.1.0", "compiler: LLVM", "$ true"):
        assert line in text


def test_the_picture_fetches_nothing_and_is_the_same_each_time() -> None:
    picture = svg(SESSION)
    assert "font-face" not in picture
    assert "url(http" not in picture
    assert "url('" not in picture
    assert svg(SESSION) == picture


def test_the_command_writes_the_picture_and_prints_the_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path / "session.svg"), "echo hello"]) == 0
    assert capsys.readouterr().out == "$ echo hello\nhello\n"
    assert "hello" in options((tmp_path / "session.svg").read_text())
