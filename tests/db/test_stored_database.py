"""A database of 0015, the last of fifteen migrations, which are one now: it opens, and goes on.

Filled by the tuner of that day: 3 trials on a processor, 3 in the simulator, and of a replay 3 of 6.
"""

import gzip
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command

from tests.cli.conftest import Tuner
from tests.db.test_commands import commands_on
from tests.db.test_database import config, connected, make_empty
from tests.db.values import sha256
from tests.fleet.recorded_runs import RECORDING
from tuner.core.runs import Counts, TrialQuery
from tuner.db.database import REVISIONS
from tuner.db.models import MachineRow, ProblemRow
from tuner.db.store import Store

STORED = Path(__file__).parent / "stored"
CPU, SIMULATOR, REPLAY = 1, 2, 3  # runs


@pytest.fixture
def stored(url: str) -> str:
    """Gives a copy of the database, in which the replay's recording is the one that is shipped."""
    make_empty(url)
    kind = "postgres" if "://" in url else "sqlite"
    text = gzip.decompress((STORED / f"revision_0015.{kind}.sql.gz").read_bytes()).decode()
    statements = text.replace("RECORDING", str(RECORDING))
    if kind == "sqlite":
        with closing(sqlite3.connect(url)) as connection:
            connection.executescript(statements)
    else:
        with connected(url) as connection:
            connection.connection.cursor().execute(statements)
    return url


def test_it_opens_with_all_its_trials(stored: str) -> None:
    with Store.open(stored) as store:
        found = store.info()
        assert (found.revision, found.runs, found.trials) == (REVISIONS[-1], 3, 10)
        assert store.counts(CPU) == Counts(proposed=3, measured=3, reused=1)
        assert store.counts(SIMULATOR) == Counts(proposed=3, verified=3)
        assert store.counts(REPLAY) == Counts(proposed=4, measured=3)
        for trial in store.trials(TrialQuery()):
            assert trial.record.script_sha256 == sha256(trial.script_text)


def test_its_runs_on_a_cpu_were_timed_on_cache_lines(stored: str) -> None:
    keys = problem_keys(stored)
    with Store.open(stored) as store:
        problems = {run: store.run(run).settings.problem for run in (CPU, SIMULATOR, REPLAY)}
    assert {run: problem.align for run, problem in problems.items()} == {
        CPU: "64",
        SIMULATOR: "16",
        REPLAY: "16",
    }
    assert problem_keys(stored) == sorted({problem.key for problem in problems.values()})
    with connected(stored) as connection:
        command.downgrade(config(connection), "0015")
    assert problem_keys(stored) == keys


def problem_keys(url: str) -> list[str]:
    with connected(url) as connection:
        return sorted(connection.execute(sa.text("select key from problem")).scalars())


def test_what_belongs_to_its_runs_is_read(stored: str) -> None:
    with Store.open(stored) as store:
        run = store.run(CPU)
        assert run.baseline is not None
        assert run.roofline is not None
        (timing_round,) = store.rounds(CPU)
        assert timing_round.is_answering
        assert timing_round.quality.host is not None
        assert sum(trial.final is not None for trial in store.trials(TrialQuery(run=CPU))) == 2
        for trial in store.trials(TrialQuery(run=SIMULATOR)):
            program = store.program(trial.id)
            assert program is not None
            assert program.resources == trial.record.resources != ()


def test_the_recording_of_its_replay_is_no_search_space(stored: str) -> None:
    with Store.open(stored) as store:
        settings = store.run(REPLAY).settings
        assert (settings.recording, settings.space_yaml) == (str(RECORDING), "")
        for run in (CPU, SIMULATOR):
            settings = store.run(run).settings
            assert settings.recording == ""
            assert "strategies:" in settings.space_yaml


def test_the_replay_goes_back_to_the_revision_that_it_is_of(stored: str) -> None:
    before = replay_columns(stored)
    Store.open(stored).close()
    with connected(stored) as connection:
        command.downgrade(config(connection), "0015")
    assert replay_columns(stored) == before


def replay_columns(url: str) -> tuple[object, ...]:
    with connected(url) as connection:
        return tuple(connection.execute(sa.text(f"SELECT * FROM run WHERE id = {REPLAY}")).one())


def test_a_new_run_shares_its_rows(stored: str) -> None:
    with Store.open(stored) as store:
        run = store.run(CPU)
        store.begin_run(run.settings, run.machine, run.compiler, "0.1.0", None)
    with connected(stored) as connection:
        counts = (sa.select(sa.func.count()).select_from(table) for table in (ProblemRow, MachineRow))
        assert [connection.scalar(count) for count in counts] == [3, 3]


@pytest.fixture
def tuner(stored: str) -> Tuner:
    return commands_on(stored)


@pytest.mark.slow
def test_it_is_asked(tuner: Tuner) -> None:
    for options in ("history", "history --best", "runs", "show run:1", "show run:3", "export --trial 1"):
        done = tuner(*options.split())
        assert done.code == 0, (options, done.err)


@pytest.mark.slow
def test_its_interrupted_run_goes_on_to_its_end(tuner: Tuner) -> None:
    before = tuner("history", "--run", str(REPLAY), "--json").json
    assert tuner("tune", "--resume", str(REPLAY)).code == 0
    after = tuner("history", "--run", str(REPLAY), "--json").json
    assert len(after) == 6
    assert [trial["trial"] for trial in after[: len(before)]] == [trial["trial"] for trial in before]
    assert {trial["status"] for trial in after} == {"measured"}
