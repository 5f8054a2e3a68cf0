"""The command as a process: exit codes, signals, kill -9, pipes that close."""

import json
import os
import pty
import resource
import select
import signal
import sqlite3
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Tuner, counts
from tests.fakes import HANG_S, await_death, children_of
from tests.tuning import fakes
from tuner.core.queries import TrialQuery
from tuner.core.trials import StoredTrial
from tuner.db.store import Store

# Commands on a terminal: a pseudo-terminal that is typed to and read from.

ROOT = Path(__file__).parents[2]
LIMIT_S = 60.0  # for what is waited for, on a machine that others keep busy


class Terminal:
    def __init__(self, pid: int, descriptor: int) -> None:
        self.pid = pid
        self.shown = ""  # so far
        self._descriptor = descriptor

    def await_text(self, text: str) -> None:
        while text not in self.shown:
            assert self._read(), f"ended without {text!r}: {self.shown}"

    def press(self, key: bytes) -> None:
        os.write(self._descriptor, key)

    def end(self) -> int:
        """Reads to the end; returns the exit code, negative for a signal."""
        while self._read():
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def _read(self) -> bool:
        assert select.select([self._descriptor], [], [], LIMIT_S)[0], f"nothing shown: {self.shown}"
        try:
            read = os.read(self._descriptor, 1 << 16)
        except OSError:  # Linux: the last process closed its end
            return False
        self.shown += read.decode(errors="replace")
        return bool(read)


@contextmanager
def on_terminal(command: list[str], **variables: str) -> Iterator[Terminal]:
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": "200"} | variables
    pid, descriptor = pty.fork()
    if pid == 0:
        os.chdir(ROOT)
        os.execve(command[0], command, environment)
    try:
        yield Terminal(pid, descriptor)
    finally:
        with suppress(ProcessLookupError, ChildProcessError):  # it was waited for
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        os.close(descriptor)


SLOW_S = "0.1"  # of every timing
CAPTURED: dict[str, Any] = {"cwd": ROOT, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}


class Command:
    def __init__(self, folder: Path) -> None:
        self.database = folder / "results.db"
        self._started: list[subprocess.Popen[str]] = []

    def start(self, phrase: str, seconds: str = SLOW_S, **options: object) -> "subprocess.Popen[str]":
        process: subprocess.Popen[str] = subprocess.Popen(
            [sys.executable, "-m", "tests.cli.fake_tuner", seconds, *phrase.split()],
            env=os.environ | {"TUNER_DB": str(self.database)},
            start_new_session=True,  # a signal reaches it alone, as Ctrl-C in a terminal would not
            **CAPTURED,
            **options,  # type: ignore[call-overload]
        )
        self._started.append(process)
        return process

    def trials(self) -> tuple[StoredTrial, ...]:
        with Store.open(str(self.database)) as store:
            return store.trials(TrialQuery(run=1, sort="number"))

    def await_trials(self, count: int) -> None:
        give_up = time.monotonic() + HANG_S
        while self._stored() < count:
            assert time.monotonic() < give_up, f"{self._stored()} trials stored, wanted {count}"
            time.sleep(0.02)

    def _stored(self) -> int:
        if not self.database.exists():
            return 0
        with closing(sqlite3.connect(self.database)) as connection, suppress(sqlite3.OperationalError):
            stored = connection.execute("select count(*) from trial where status is not null")
            return int(stored.fetchone()[0])
        return 0  # the tables are being made

    def end(self) -> None:
        for process in self._started:
            process.kill()
            process.communicate()


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Command]:
    made = Command(tmp_path)
    yield made
    made.end()


TUNE = "tune matmul 8x8x8 --sampler exhaustive --trials 14"


@pytest.mark.slow
@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("number", "phrase"), [(signal.SIGINT, ""), (signal.SIGTERM, " --json")], ids=["SIGINT", "SIGTERM"]
)
def test_a_signal_loses_nothing(command: Command, number: signal.Signals, phrase: str) -> None:
    process = command.start(f"{TUNE}{phrase}")
    command.await_trials(3)
    children = children_of(process.pid)
    process.send_signal(number)
    out, err = process.communicate(timeout=HANG_S)
    assert process.returncode == 130
    assert "tuner tune --resume 1" in err
    assert not phrase or json.loads(out)["status"] == "interrupted"
    assert await_death(children) == []
    assert len(command.trials()) >= 3
    with Store.open(str(command.database)) as store:
        assert store.run(1).status == "interrupted"


@pytest.mark.slow
def test_a_second_signal_kills_at_once(command: Command) -> None:
    process = command.start(TUNE, seconds="1000")
    give_up = time.monotonic() + HANG_S
    while not children_of(process.pid) and time.monotonic() < give_up:
        time.sleep(0.02)
    # stopped, it cannot end by the first one before the second arrives; both are pending when it goes on
    for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGINT, signal.SIGCONT):
        process.send_signal(number)
    process.communicate(timeout=HANG_S)
    assert process.returncode != 0


def test_kill_9_loses_no_stored_trial_and_resume_goes_on(command: Command) -> None:
    process = command.start(TUNE)
    command.await_trials(4)
    children = children_of(process.pid)
    process.kill()
    process.communicate()
    assert await_death(children) == []
    finished = {trial.id: trial.record for trial in command.trials()}
    assert len(finished) >= 4
    process = command.start("tune --resume 1 --json", seconds="0")
    out, err = process.communicate(timeout=HANG_S)
    assert process.returncode == 0, err
    after = {trial.id: trial.record for trial in command.trials()}
    assert [trial.number for trial in command.trials()] == list(range(14))
    assert all(after[trial] == record for trial, record in finished.items())
    reported = json.loads(out)["counts"]
    assert reported == counts(proposed=14, measured=14, reused=reported["reused"])


@pytest.mark.slow
def test_a_reader_that_stops_early_is_no_error(tuned_database: Path) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    command = [sys.executable, "-m", "tuner", "history", "--db", str(tuned_database)]
    with os.fdopen(write_end, "w") as closed:
        done = subprocess.run(command, **CAPTURED | {"stdout": closed}, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_a_full_disk_is_one_line_and_loses_nothing(command: Command) -> None:
    Tuner(command.database, fakes.backends()).done("tune matmul 8x8x8 --trials 2")
    limit = command.database.stat().st_size + 200_000

    def full_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    phrase = "tune matmul 8x8x8 --trials 20 --fresh --threads 2"
    for _ in range(60):  # each run adds some
        process = command.start(phrase, seconds="0", preexec_fn=full_disk)
        _, err = process.communicate(timeout=HANG_S)
        if process.returncode != 0:
            break
    assert process.returncode == 2
    assert [line for line in err.splitlines() if line.startswith("error: database")], err
    assert "Traceback" not in err
    assert len(command.trials()) == 2


# Ctrl-C during imports, a terminal that is restored, a closed stdout.

CTRL_C = b"\x03"
WAITING_IMPORT = """
import signal
print("importing click", flush=True)
while True:
    signal.pause()
"""
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MODULE, _, FUNCTION = PROJECT["scripts"]["tuner"].partition(":")
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
    command = ["/bin/sh", "-c", "trap '' INT; exec \"$0\" -m tuner history", sys.executable]
    variables = os.environ | {"PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT)))}
    assert subprocess.run(command, env=variables, **CAPTURED, check=True).stdout == "True\n"


@pytest.mark.slow
@pytest.mark.parametrize("signals", [(), (signal.SIGINT, signal.SIGTERM)], ids=["once", "twice"])
def test_a_terminal_has_its_cursor_after_ctrl_c(tmp_path: Path, signals: tuple[signal.Signals, ...]) -> None:
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
@pytest.mark.parametrize("phrase", ["history", "history --runs", "--help", "history --json"])
def test_a_closed_stdout_is_no_error_and_nothing_is_written_to_the_database(
    tuned_database: Path, phrase: str
) -> None:
    command = ["/bin/sh", "-c", 'exec "$0" -m tuner "$@" >&-', sys.executable, *phrase.split()]
    variables = os.environ | {"TUNER_DB": str(tuned_database)}
    done = subprocess.run(command, env=variables, stdin=subprocess.DEVNULL, **CAPTURED, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    with closing(sqlite3.connect(tuned_database)) as connection, connection:
        assert connection.execute("pragma integrity_check").fetchone() == ("ok",)


LOSES = """
import signal, weakref
from tuner.__main__ import exit_on_dropped_interrupts
class Module: pass
signal.signal(signal.SIGINT, signal.default_int_handler)
if {is_installed}:
    exit_on_dropped_interrupts()
module = Module()
callback = weakref.ref(module, lambda _: signal.raise_signal(signal.SIGINT))
del module
print("went on")
"""


def test_an_interrupt_that_python_drops_ends_the_process() -> None:
    for is_installed, code, out in ((False, 0, "went on\n"), (True, 130, "")):
        command = [sys.executable, "-c", LOSES.format(is_installed=is_installed)]
        ended = subprocess.run(command, **CAPTURED, check=False)
        assert (ended.returncode, ended.stdout) == (code, out)
        assert bool(ended.stderr) != is_installed
