"""The command as a process: exit codes, signals, kill -9, pipes that close."""

import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Tuner
from tests.fakes import HANG_S, await_death, children_of
from tests.tuning import fakes
from tuner.core.runs import StoredTrial, TrialQuery
from tuner.db.store import Store

ROOT = Path(__file__).parents[2]
SLOW_S = "0.1"  # of every timing


class Command:
    """Starts commands over a fake target on one database."""

    def __init__(self, folder: Path) -> None:
        self.database = folder / "results.db"
        self._started: list[subprocess.Popen[str]] = []

    def start(self, *phrase: str, seconds: str = SLOW_S, **options: object) -> "subprocess.Popen[str]":
        arguments = [sys.executable, "-m", "tests.cli.fake_tuner", seconds, *phrase]
        process: subprocess.Popen[str] = subprocess.Popen(
            arguments,
            cwd=ROOT,
            env=os.environ | {"TUNER_DB": str(self.database)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # a signal reaches it alone, as Ctrl-C in a terminal would not
            **options,  # type: ignore[call-overload]
        )
        self._started.append(process)
        return process

    def run(self, *phrase: str) -> tuple[int, str, str]:
        process = self.start(*phrase, seconds="0")
        out, err = process.communicate(timeout=HANG_S)
        return process.returncode, out, err

    def trials(self) -> tuple[StoredTrial, ...]:
        with Store.open(str(self.database)) as store:
            return store.trials(TrialQuery(run=1, sort="number"))

    def await_trials(self, count: int) -> None:
        """Waits until so many trials have an outcome in the database."""
        give_up = time.monotonic() + HANG_S
        while time.monotonic() < give_up:
            if self._stored() >= count:
                return
            time.sleep(0.02)
        raise AssertionError(f"{self._stored()} trials stored, wanted {count}")

    def _stored(self) -> int:
        if not self.database.exists():
            return 0
        connection = sqlite3.connect(self.database)
        try:
            stored = connection.execute("select count(*) from trial where status is not null")
            return int(stored.fetchone()[0])
        except sqlite3.OperationalError:  # the tables are being made
            return 0
        finally:
            connection.close()

    def end(self) -> None:
        for process in self._started:
            process.kill()
            process.communicate()


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Command]:
    made = Command(tmp_path)
    yield made
    made.end()


TUNE = ("tune", "matmul", "8x8x8", "--sampler", "exhaustive", "--trials", "14")


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("number", "phrase"), [(signal.SIGINT, ()), (signal.SIGTERM, ("--json",))], ids=["SIGINT", "SIGTERM"]
)
def test_a_signal_ends_a_run_without_loss(
    command: Command, number: signal.Signals, phrase: tuple[str, ...]
) -> None:
    process = command.start(*TUNE, *phrase)
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
    process = command.start(*TUNE, seconds="1000")
    give_up = time.monotonic() + HANG_S
    while not children_of(process.pid) and time.monotonic() < give_up:
        time.sleep(0.02)
    # stopped, it cannot end by the first one before the second arrives; both are pending when it goes on
    process.send_signal(signal.SIGSTOP)
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGCONT)
    process.communicate(timeout=HANG_S)
    assert process.returncode != 0


def test_kill_9_loses_no_stored_trial_and_resume_goes_on(command: Command) -> None:
    process = command.start(*TUNE)
    command.await_trials(4)
    children = children_of(process.pid)
    process.kill()
    process.communicate()
    assert await_death(children) == []
    finished = {trial.id: trial.record for trial in command.trials()}
    assert len(finished) >= 4
    code, out, err = command.run("tune", "--resume", "1", "--json")
    assert code == 0, err
    after = {trial.id: trial.record for trial in command.trials()}
    assert [trial.number for trial in command.trials()] == list(range(14))
    assert all(after[trial] == record for trial, record in finished.items())
    counts = json.loads(out)["counts"]
    assert counts == {
        "proposed": 14,
        "measured": 14,
        "verified": 0,
        "failed": 0,
        "reused": counts["reused"],
        "compiled": 0,
    }


@pytest.mark.slow
def test_a_reader_that_stops_early_is_no_error(tuned_database: Path) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "w") as closed:
        done = subprocess.run(
            [sys.executable, "-m", "tuner", "history", "--db", str(tuned_database)],
            cwd=ROOT,
            stdout=closed,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_a_full_disk_is_one_line_and_loses_nothing(command: Command) -> None:
    assert Tuner(command.database, fakes.backends())("tune", "matmul", "8x8x8", "--trials", "2").code == 0
    limit = command.database.stat().st_size + 200_000

    def full_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    phrase = ("tune", "matmul", "8x8x8", "--trials", "20", "--fresh", "--threads", "2")
    for _ in range(60):  # each run adds some
        process = command.start(*phrase, seconds="0", preexec_fn=full_disk)
        _, err = process.communicate(timeout=HANG_S)
        if process.returncode != 0:
            break
    assert process.returncode == 2
    assert [line for line in err.splitlines() if line.startswith("error: database")], err
    assert "Traceback" not in err
    assert len(command.trials()) == 2
