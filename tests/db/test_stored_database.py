"""A database of 0026, the migrations of developers, which are one now: it opens, and goes on.

Filled by the tuner of that day: 3 trials on a processor, 3 in the simulator, and of a replay 3 of 6.
"""

import gzip
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import cast

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session

from tests.cli.conftest import Tuner
from tests.db.test_database import connected, make_empty
from tests.db.values import sha256
from tests.fleet.recorded_runs import RECORDING
from tests.results.regression.test_gate import changed
from tests.tuning import fakes
from tuner.core.fusions import FusionFacts
from tuner.core.matmul import Matmul
from tuner.core.problem_classes import FusedProblem
from tuner.core.runs import Counts, TrialQuery
from tuner.db.database import REVISIONS
from tuner.db.models import CampaignRow, MachineRow, ProblemRow
from tuner.db.rows import problem_of
from tuner.db.store import Store

STORED = Path(__file__).parent / "stored"
CPU, SIMULATOR, REPLAY = 1, 2, 3  # runs


@pytest.fixture
def stored(url: str) -> str:
    make_empty(url)
    kind = "postgres" if "://" in url else "sqlite"
    text = gzip.decompress((STORED / f"revision_0026.{kind}.sql.gz").read_bytes()).decode()
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


FUSION = (
    "func.func @group(%a: memref<4x8xbf16>, %b: tensor<4x?x8xf32, strided<[8, 1]>>) attributes "
    "{tuner.bytes = 128 : i64, tuner.contractions = 2 : i64, tuner.loops = array<i64: 4, 16, 8>} {"
)
PACKED = "4x8x64 bf16*constant->bf16 nt none"
OTHERS = (  # key, shape, text
    ("contraction 3x4x8x2 f32 nn none", FUSION),
    (f"contraction {PACKED}", 'tuner.constant = "b"'),
    ("quantized_matmul 1x8x64 f32*i4-g32-f16 nt none", 'tuner.quantization = "i4-g32-f16"'),
)


def test_facts_of_fusions_and_formats_of_packed_weights_are_read_from_stored_texts(stored: str) -> None:
    names = "key, operation, shape, dtype, layout, epilogue, output, group_text"
    with connected(stored) as connection:
        for key, text in OTHERS:
            operation, shape, types, layout, epilogue = key.split()
            dtype, output = types.partition("*")[0], types.partition("->")[2]
            values = (key, operation, shape, dtype, layout, epilogue, output, text)
            marks = ", ".join(f":v{number}" for number in range(len(values)))
            insert = sa.text(f"INSERT INTO problem ({names}) VALUES ({marks})")
            connection.execute(insert, {f"v{number}": value for number, value in enumerate(values)})
    Store.open(stored).close()
    with connected(stored) as connection, Session(connection) as session:
        rows = session.scalars(sa.select(ProblemRow).order_by(ProblemRow.id)).all()[-3:]
        fused, constant, quantized = map(problem_of, rows)
        keys = [row.key for row in rows]
    renamed = FUSION.replace("@group(", "@fusion(")
    facts = FusionFacts((4, 16, 8), 2, bytes=128, elements=("bf16", "f32"))
    assert fused == FusedProblem("contraction", (4, 8, 2), "f32", batch=3, text=renamed, facts=facts)
    assert constant == Matmul(4, 8, 64, "bf16", "nt", output="bf16", weights="constant")
    assert quantized == Matmul(1, 8, 64, weights="i4", group_size=32)
    assert [constant.key, quantized.key] == keys[1:]


def test_results_of_programs_name_their_fusions(stored: str) -> None:
    values = {
        "uuid": "one",
        "created": "2026-11-27 00:00:00",
        "source": "",
        "status": "done",
        "program_result": json.dumps({"call_s": 1.0, "groups": [{"group": {"kind": "rows"}, "time_s": 2.0}]}),
    }
    numbers = "seed, seconds, search_s, columns"
    with connected(stored) as connection:
        marks = ", ".join(f":{name}" for name in values)
        names = ", ".join(values)
        insert = f"INSERT INTO run_group ({names}, {numbers}) VALUES ({marks}, 0, 0, 0, '[]')"
        connection.execute(sa.text(insert), values)
    Store.open(stored).close()
    with connected(stored) as connection:
        (result,) = connection.scalars(sa.select(CampaignRow.program_result)).all()
    assert result == {"call_s": 1.0, "fusions": [{"fusion": {"kind": "rows"}, "time_s": 2.0}]}


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
