"""Rounds under load: real processes are stopped and go on. Sessions that are recorded for the README."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks import stress
from benchmarks.terminal_recording import Typed, main, record, screen, svg
from tuner.runtime.workers.processes import state_of

WAITS = "import sys; print('up', flush=True); sys.stdin.read()"
SESSION = (Typed("tuner --version", "tuner 0.1.0\ncompiler: LLVM\n"), Typed("true", ""))


def waiting(token: str) -> "subprocess.Popen[bytes]":
    command, variables = [sys.executable, "-c", WAITS], {**os.environ, stress.VARIABLE: token}
    process = subprocess.Popen(command, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    return process


def test_all_that_run_are_stopped_and_go_on_and_what_a_test_has_stopped_stays_so() -> None:
    processes = [waiting("one"), waiting("one"), waiting("other")]
    running, stopped, other = processes
    try:
        stopped.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, stopped.pid, os.WSTOPPED | os.WNOWAIT)
        found = stress.stop_all("one")
        os.waitid(os.P_PID, running.pid, os.WSTOPPED | os.WNOWAIT)
        assert found == (running.pid,)
        assert state_of(other.pid) != "T"
        stress.go_on(found)
        os.waitid(os.P_PID, running.pid, os.WCONTINUED | os.WNOWAIT)
        assert state_of(stopped.pid) == "T"
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    stress.go_on((running.pid,))  # has ended: nothing to do


def test_tests_exist_and_rounds_with_other_settings_are_not_continued(tmp_path: Path) -> None:
    assert [path for path in stress.TESTS if not (stress.ROOT / path).exists()] == []
    output = tmp_path / "stress.json"
    output.write_text(json.dumps({"settings": {"seed": 1}, "rows": []}))
    with pytest.raises(SystemExit, match="its rounds had other settings; give another --output"):
        stress.finished_rounds(output, {"seed": 0})


def stressed(*options: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "benchmarks.stress", "--loops", "1", *options]
    return subprocess.run(command, cwd=stress.ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("body", "is_right"), [("pass", True), ("assert False", False)])
@pytest.mark.slow
def test_a_failure_of_a_round_is_named_and_ends_with_1(body: str, is_right: bool, tmp_path: Path) -> None:
    file, output = tmp_path / "test_it.py", tmp_path / "stress.json"
    file.write_text(f"def test_it():\n    {body}\n\ndef test_other():\n    pass\n")
    ended = stressed("--rounds", "2", "--output", str(output), str(file))
    assert ended.returncode == (0 if is_right else 1), ended.stderr
    document = json.loads(output.read_text())
    assert document["summary"]["tests"] == 4
    names = document["summary"]["failures"]
    assert [name.rpartition("::")[2] for name in names] == ([] if is_right else ["test_it"])
    assert [row["load"] for row in document["rows"]] == ["busy loops", "busy loops, stops"]


@pytest.mark.slow
def test_a_series_goes_on_with_the_rounds_that_are_missing(tmp_path: Path) -> None:
    file, output = tmp_path / "test_it.py", tmp_path / "stress.json"
    file.write_text("def test_it():\n    pass\n")
    documents = []
    for rounds in ("1", "2"):
        stressed("--resume", "--rounds", rounds, "--output", str(output), str(file)).check_returncode()
        documents.append(json.loads(output.read_text()))
    assert [row["round"] for row in documents[1]["rows"]] == [0, 1]
    assert (documents[1]["rows"][0], documents[1]["summary"]["tests"]) == (documents[0]["rows"][0], 2)


def options(picture: str) -> str:
    return "".join(ElementTree.fromstring(picture).itertext()).replace("\N{NO-BREAK SPACE}", " ")


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("one\r\ntwo\r\n", "one\ntwo\n"),
        ("12 done\r\x1b[2Kbest\r\n", "best\n"),  # a line that moves
        ("a bar\r\n\x1b[1A\x1b[2Kbest\r\n", "best\n"),
        ("\x1b[?25l\x1b[91mred\x1b[0m \x1b[2mbar\x1b[0m\x1b[?25h\r\n", "red bar\n"),
        ("0123456789\r\n", "01234567\n89\n"),
        ("longer\rnew\r\n", "newger\n"),
        ("", "\n"),
    ],
)
def test_a_recording_has_what_stays_on_the_screen(printed: str, shown: str) -> None:
    assert screen(printed, columns=8) == shown


def test_both_outputs_of_commands_are_recorded_in_a_picture_that_fetches_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session = record(("echo one > kept; echo two >&2", "cat kept", "test -t 2 && echo stays"), tmp_path)
    assert [typed.printed for typed in session] == ["two\n", "one\n", "stays\n"]
    with pytest.raises(RuntimeError, match=r"^echo why; exit 3: exited with 3: why"):
        record(("echo why; exit 3",), tmp_path)
    assert main([str(tmp_path / "session.svg"), "echo hello"]) == 0
    assert capsys.readouterr().out == "$ echo hello\nhello\n"
    assert "hello" in options((tmp_path / "session.svg").read_text())
    picture = svg(SESSION)
    text = options(picture)
    for line in ("$ tuner --version", "tuner 0.1.0", "compiler: LLVM", "$ true"):
        assert line in text
    assert [each for each in ("font-face", "url(http", "url('") if each in picture] == []
    assert svg(SESSION) == picture
