"""A database that migrations of developers brought to the first revision: it opens, and goes on.

Filled by the tuner of that day: 3 trials on a processor, 3 in the simulator, and of a replay 3 of 6.
"""

import gzip
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import cast

import pytest
import sqlalchemy as sa

from tests.cli.conftest import Tuner
from tests.db.test_database import connected, make_empty
from tests.db.values import sha256
from tests.elsewhere.fleet.recorded_runs import RECORDING
from tests.results.regression.test_gate import changed
from tests.tuning import fakes
from tuner.core.queries import Counts, TrialQuery
from tuner.db.database import REVISIONS
from tuner.db.models import MachineRow, ProblemRow
from tuner.db.store import Store

STORED = Path(__file__).parent / "stored"
CPU, SIMULATOR, REPLAY = 1, 2, 3  # runs


@pytest.fixture
def stored(url: str) -> str:
    make_empty(url)
    kind = "postgres" if "://" in url else "sqlite"
    text = gzip.decompress((STORED / f"revision_{REVISIONS[0]}.{kind}.sql.gz").read_bytes()).decode()
    statements = text.replace("RECORDING", str(RECORDING))
    if kind == "sqlite":
        with closing(sqlite3.connect(url)) as connection:
            connection.executescript(statements)
    else:
        with connected(url) as connection:
            connection.connection.cursor().execute(statements)
    return url


def test_it_opens_with_all_its_trials_and_a_new_run_shares_its_rows(stored: str) -> None:
    with Store.open(stored) as store:
        found = store.info()
        assert (found.revision, found.runs, found.trials) == (REVISIONS[-1], 3, 10)
        expected = Counts(3, 3, reused=1), Counts(proposed=3, verified=3), Counts(4, 3)
        assert tuple(map(store.counts, (CPU, SIMULATOR, REPLAY))) == expected
        for trial in store.trials(TrialQuery()):
            assert trial.record.script_sha256 == sha256(trial.script_text)
        run, (timing_round,) = store.run(CPU), store.rounds(CPU)
        assert timing_round.is_answering
        assert None not in (run.baseline, run.roofline, timing_round.quality.host)
        assert sum(trial.final is not None for trial in store.trials(TrialQuery(run=CPU))) == 2
        for trial in store.trials(TrialQuery(run=SIMULATOR)):
            program = store.code(trial.id)
            assert program is not None
            assert program.resources == trial.record.resources != ()
        settings = store.run(REPLAY).settings
        assert (settings.recording, settings.space_yaml) == (str(RECORDING), "")
        for number in (CPU, SIMULATOR):
            settings = store.run(number).settings
            assert settings.recording == ""
            assert "strategies:" in settings.space_yaml
        store.begin_run(run.settings, run.machine, run.compiler, "0.1.0", None)
    with connected(stored) as connection:
        counts = (sa.select(sa.func.count()).select_from(table) for table in (ProblemRow, MachineRow))
        assert [connection.scalar(count) for count in counts] == [3, 3]


@pytest.mark.slow
def test_it_is_asked_and_its_interrupted_run_goes_on_to_its_end(stored: str) -> None:
    tuner = commands_on(stored)
    for asked in (
        "history",
        "history --best",
        "history --runs",
        "show run:1",
        "show run:3",
        "export --trial 1",
    ):
        tuner.done(asked)
    before = tuner("history", "--run", str(REPLAY), "--json").json
    tuner.done("tune --resume", str(REPLAY))
    after = tuner("history", "--run", str(REPLAY), "--json").json
    assert len(after) == 6
    assert [trial["trial"] for trial in after[: len(before)]] == [trial["trial"] for trial in before]
    assert {trial["status"] for trial in after} == {"measured"}


# The commands that look after results do the same on a file and on a server.


def commands_on(url: str) -> Tuner:
    return Tuner(cast(Path, url), fakes.backends())  # which becomes the text of TUNER_DB


@pytest.mark.slow
def test_a_run_is_tuned_asked_for_audited_gated_pruned_and_copied(url: str, tmp_path: Path) -> None:
    tuner = commands_on(url)
    tuner.done("tune matmul 8x8x8 --sampler exhaustive --trials 20")
    assert len(tuner("history", "--json").json) == 20
    (best,) = tuner("history", "--best", "--shape", "8x8x8", "--json").json
    assert best["median_s"] == fakes.BEST_S
    assert tuner("check --best", "--json").json["flagged"] == 0
    gate = str(tmp_path / "gate.json")
    assert tuner("check", "--baseline", gate, "--record", "best").code == 0
    tuner.backends = changed(x=8)
    assert tuner("check", "--baseline", gate).code == 1
    assert tuner("db", "prune", "--json").json["trials"] > 0
    assert tuner("history", "--best", "--json").json == [best]
    copy = tmp_path / "copy.db"
    assert tuner("db", "backup", str(copy)).code == 0
    assert tuner("db", "merge", str(copy), "--json").json == {"runs": 0, "trials": 0}
    assert commands_on(str(copy))("history", "--best", "--json").json[0]["median_s"] == best["median_s"]
