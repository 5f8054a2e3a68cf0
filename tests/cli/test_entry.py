"""The command as a process: Ctrl-C during imports, a terminal that is restored, a closed stdout."""

import os
import signal
import sqlite3
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.cli.terminal import ROOT, on_terminal

CTRL_C = b"\x03"
WAITING_IMPORT = """
import signal
print("importing click", flush=True)
while True:
    signal.pause()
"""
MODULE, _, FUNCTION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"][
    "tuner"
].partition(":")
SCRIPT = f"import sys; from {MODULE} import {FUNCTION}; sys.exit({FUNCTION}())"  # as installers write it


@pytest.mark.parametrize("entry", [("-m", "tuner"), ("-c", SCRIPT)], ids=["module", "script"])
def test_an_interrupt_during_imports_prints_no_traceback(tmp_path: Path, entry: tuple[str, ...]) -> None:
    (tmp_path / "click.py").write_text(WAITING_IMPORT)
    path = os.pathsep.join((str(tmp_path), str(ROOT)))
    with on_terminal([sys.executable, *entry, "history"], PYTHONPATH=path) as terminal:
        terminal.await_text("importing click")
        terminal.press(CTRL_C)
        assert terminal.end() == 130
    assert "Traceback" not in terminal.shown


def test_an_ignored_interrupt_stays_ignored(tmp_path: Path) -> None:
    """As in the background of a shell's script."""
    given = "import signal\nprint(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)\nraise SystemExit"
    (tmp_path / "click.py").write_text(given)
    done = subprocess.run(
        ["/bin/sh", "-c", "trap '' INT; exec \"$0\" -m tuner history", sys.executable],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT)))},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "True\n"


@pytest.mark.slow
@pytest.mark.parametrize("signals", [(), (signal.SIGINT, signal.SIGTERM)], ids=["once", "twice"])
def test_a_terminal_has_its_cursor_again_after_interrupts(
    tmp_path: Path, signals: tuple[signal.Signals, ...]
) -> None:
    phrase = ("tune", "matmul", "8x8x8", "--trials", "20", "--db", str(tmp_path / "results.db"))
    command = [sys.executable, "-m", "tests.cli.fake_tuner", "30" if signals else "0.1", *phrase]
    with on_terminal(command) as terminal:
        terminal.await_text("\x1b[?25l")  # the cursor is hidden
        if signals:  # stopped, it cannot end by the first one before the second arrives
            os.kill(terminal.pid, signal.SIGSTOP)
            for number in signals:
                os.kill(terminal.pid, number)
            os.kill(terminal.pid, signal.SIGCONT)
            assert terminal.end() < 0
        else:
            terminal.press(CTRL_C)
            assert terminal.end() == 130
    assert terminal.shown.rindex("\x1b[?25h") > terminal.shown.rindex("\x1b[?25l")
    assert "Traceback" not in terminal.shown


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    "phrase", [("history",), ("runs",), ("--help",), ("history", "--json")], ids=" ".join
)
def test_a_closed_stdout_is_no_error_and_nothing_is_written_to_the_database(
    tmp_path: Path, tuned_database: Path, phrase: tuple[str, ...]
) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$0" -m tuner "$@" >&-', sys.executable, *phrase],
        cwd=ROOT,
        env=os.environ | {"TUNER_DB": str(tuned_database)},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    with sqlite3.connect(tuned_database) as connection:
        assert connection.execute("pragma integrity_check").fetchone() == ("ok",)


LOSES = """
import signal, weakref
from tuner.__main__ import end_by_lost_interrupts
class Module: pass
signal.signal(signal.SIGINT, signal.default_int_handler)
if {is_installed}:
    end_by_lost_interrupts()
module = Module()
callback = weakref.ref(module, lambda _: signal.raise_signal(signal.SIGINT))
del module
print("went on")
"""


@pytest.mark.parametrize(("is_installed", "code", "out"), [(False, 0, "went on\n"), (True, 130, "")])
def test_an_interrupt_that_python_drops_ends_the_process(is_installed: bool, code: int, out: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", LOSES.format(is_installed=is_installed)], capture_output=True, text=True
    )
    assert (ended.returncode, ended.stdout) == (code, out)
    assert bool(ended.stderr) != is_installed
