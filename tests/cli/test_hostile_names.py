"""Hostile texts in a merged database: no output moves a terminal, none adds a line to a header."""

import csv
import io
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Tuner
from tests.tuning import fakes
from tuner.core.serialization import CONTROLS
from tuner.db.columns import plain
from tuner.space.scripts.header import RUN, read_provenance

HOSTILE = (
    "\x1b[31mred\x1b[0m\x1b]0;title\x07\x00",
    "a\r\nmodule { }\n// tuner: {}",
    "=1+1\x7f\x85\x9b2J\u202ebackwards\u2028line",
)
# What a text column may hold without the row being no row: keys, words that the tuner chooses from, JSON.
COLUMNS = {
    "machine": ("name", "processor", "isa"),
    "environment": ("fingerprint", "mlir"),
    "run": ("sampler", "tuner_version", "baseline_name", "unreliable", "strategies"),
    "trial": ("strategy", "reason", "stale", "knobs", "notes", "stage_s"),
    "timing_round": ("unreliable", "baseline_name", "lost"),
}
JSON_COLUMNS: dict[str, Callable[[str], object]] = {
    "strategies": lambda text: [text],
    "knobs": lambda text: {text: text, "x": 7},
    "notes": lambda text: [text],
    "stage_s": lambda text: [[text, 0.5]],
}
COMMANDS = (
    *("history", "history --best", "history --json", "history --format csv"),
    *("history --runs", "history --runs --json", "show run:1", "show run:1 --json", "explain 2"),
    *("show 1", "show 2", "show 1 --json"),
    *("diff 1 2", "diff run:1 run:1", "report", "export --trial 1", "export --trial 1 --json", "db info"),
)


@pytest.fixture(params=HOSTILE, ids=range(len(HOSTILE)))
def merged(tuned: Tuner, tmp_path: Path, request: pytest.FixtureRequest) -> Tuner:
    """Gives commands a database into which one was merged whose texts are hostile; trial 2 failed."""
    text = str(request.param)
    with closing(sqlite3.connect(tuned.database)) as connection, connection:
        connection.execute("UPDATE trial SET status = 'failed', stage = 'compile' WHERE number = 1")
        connection.execute("DELETE FROM measurement WHERE trial_id = 2")
        for table, columns in COLUMNS.items():
            known = {name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")}
            for column in known.intersection(columns):
                stored = json.dumps(JSON_COLUMNS[column](text)) if column in JSON_COLUMNS else text
                is_of_failure = table == "trial" and column in ("reason", "stale", "notes")
                where = " WHERE number = 1" if is_of_failure else ""
                connection.execute(f"UPDATE {table} SET {column} = ?{where}", (stored,))
    ours = Tuner(tmp_path / "ours.db", fakes.backends())
    ours.done("db merge", str(tuned.database))
    return ours


def test_no_output_holds_a_control_character(merged: Tuner) -> None:
    for command in COMMANDS:
        done = merged(command)
        assert "defect" not in done.err, (command, done.err)
        assert CONTROLS.findall(done.out + done.err) == [], command
    assert merged("history").code == merged("show 1").code == merged("report").code == 0


@pytest.mark.drawn(2)
def test_json_csv_and_an_exported_header_hold_the_texts_without_harm(merged: Tuner, tmp_path: Path) -> None:
    (first, *_) = merged("history --sort number --json").json
    assert first["strategy"] in {plain(text) for text in HOSTILE}
    file = tmp_path / "best.mlir"
    merged.done("export --trial 1 -o", str(file))
    text = file.read_text()
    header, run, _ = text.partition(f"{RUN}\n")
    assert run
    assert all(line.startswith("// ") for line in header.splitlines())
    assert CONTROLS.search(header) is None
    provenance = read_provenance(file, text)
    assert provenance.machine == provenance.strategy
    rows = list(csv.DictReader(io.StringIO(merged("history --format csv").out)))
    assert len(rows) == 20
    for row in rows:
        for cell in row.values():
            is_number = cell.replace(".", "").replace("e-", "").lstrip("-").isdigit()
            assert is_number or not cell.startswith(("=", "+", "-", "@", "\t", "\r")), cell


# Databases that hold times which cannot be: all that reads them works, and no such time is the best.

QUERIES = (
    *("history", "history --best", "history --sort median --json", "history --format csv"),
    *("history --runs", "history --runs --json", "show run:1", "show run:1 --json"),
    *(
        "report",
        "explain run:1",
        "show run:1 --ablation",
        "diff run:1 run:1",
        "export matmul 8x8x8",
    ),
    *("check --best", "db info", "db prune", "tune matmul 8x8x8 --trials 3", "tune matmul 9x8x8 --trials 3"),
)


@pytest.fixture(params=["0.0", "1e-30"])
def lied_to(tuned: Tuner, request: pytest.FixtureRequest) -> Tuner:
    """Gives commands a database whose best trials, baseline and roofline were stored with such a time."""
    time_s = str(request.param)
    with closing(sqlite3.connect(tuned.database)) as connection, connection:
        best = "SELECT id FROM trial ORDER BY ranked_s LIMIT 3"
        connection.execute(
            f"UPDATE measurement SET median_s = {time_s}, low_s = {time_s}, high_s = {time_s}, "
            f"samples_s = '[{time_s}]' WHERE trial_id IN ({best}) OR run_id IS NOT NULL"
        )
        connection.execute(f"UPDATE trial SET ranked_s = {time_s} WHERE id IN ({best})")
        connection.execute(f"""UPDATE run SET roofline = '{{"flop_per_s": {time_s}, "bytes_per_s": 0.0}}'""")
    return tuned


@pytest.mark.slow
def test_every_query_works(lied_to: Tuner) -> None:
    for query in QUERIES:
        done = lied_to(query)
        assert done.code in (0, 1, 2), query
        assert "Traceback" not in done.err, query
        is_asked_of_best = query.startswith(("report", "history", "show", "export", "tune", "db"))
        is_for_many_trials = "--ablation" in query  # three are not results
        assert done.code == 0 or is_for_many_trials or not is_asked_of_best, (query, done.err)


def test_such_a_trial_has_no_speed_is_no_best_and_is_not_merged(lied_to: Tuner, tmp_path: Path) -> None:
    failed = [trial for trial in lied_to("history --json").json if trial["status"] == "failed"]
    assert len(failed) == 3
    assert {trial["gflop_per_s"] for trial in failed} == {None}
    reasons = {trial["reason"].split(" s, allowed ")[0].rpartition(" ")[0] for trial in failed}
    assert reasons == {"found a time of"}
    (best,) = lied_to("history --best --json").json
    assert best["median_s"] > 0
    assert best["trial"] not in {trial["trial"] for trial in failed}
    assert "GFLOP/s" not in lied_to("show", str(failed[0]["trial"])).out
    other = Tuner(tmp_path / "other.db", fakes.backends())
    other.done("db merge", str(lied_to.database))
    with closing(sqlite3.connect(other.database)) as connection:
        for low in ("measurement WHERE median_s < 1e-10", "trial WHERE ranked_s < 1e-10"):
            assert connection.execute(f"SELECT count(*) FROM {low}").fetchone() == (0,)
    failed = [trial for trial in other("history --json").json if trial["status"] == "failed"]
    reasons = {(trial["stage"], trial["reason"].partition(" of ")[0]) for trial in failed}
    assert reasons == {("measure", "found a time")}
    assert other("db merge", str(lied_to.database), "--json").json == {"runs": 0, "trials": 0}
    assert lied_to("db merge", str(other.database), "--json").json == {"runs": 0, "trials": 0}
