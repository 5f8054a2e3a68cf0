"""Databases that hold times which cannot be: all that reads them works, and no such time is the best."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Tuner
from tests.tuning import fakes

QUERIES = (
    *("history", "history --best", "history --sort median --json", "history --format csv", "runs"),
    *("runs --json", "history --format t4", "show run:1", "show run:1 --json", "report", "explain run:1"),
    *("ablation --run 1", "diff run:1 run:1", "export matmul 8x8x8", "export matmul 8x8x8 --format t4"),
    *("audit", "db info", "db prune", "tune matmul 8x8x8 --trials 3", "tune matmul 9x8x8 --trials 3"),
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
    for options in QUERIES:
        done = lied_to(*options.split())
        assert done.code in (0, 1, 2), options
        assert "Traceback" not in done.err, options
        is_asked_of_best = options.startswith(("report", "history", "runs", "show", "export", "tune", "db"))
        assert done.code == 0 or not is_asked_of_best, (options, done.err)


def test_such_a_trial_has_no_speed_and_is_no_best(lied_to: Tuner) -> None:
    failed = [trial for trial in lied_to("history", "--json").json if trial["status"] == "failed"]
    assert len(failed) == 3
    assert {trial["gflop_per_s"] for trial in failed} == {None}
    assert {trial["reason"].split(" s, allowed ")[0].rpartition(" ")[0] for trial in failed} == {
        "found a time of"
    }
    (best,) = lied_to("history", "--best", "--json").json
    assert best["median_s"] > 0
    assert best["trial"] not in {trial["trial"] for trial in failed}
    assert "GFLOP/s" not in lied_to("show", str(failed[0]["trial"])).out


def test_they_are_not_merged(lied_to: Tuner, tmp_path: Path) -> None:
    other = Tuner(tmp_path / "other.db", fakes.backends())
    assert other("db", "merge", str(lied_to.database)).code == 0
    with closing(sqlite3.connect(other.database)) as connection:
        for low in ("measurement WHERE median_s < 1e-10", "trial WHERE ranked_s < 1e-10"):
            assert connection.execute(f"SELECT count(*) FROM {low}").fetchone() == (0,)
    failed = [trial for trial in other("history", "--json").json if trial["status"] == "failed"]
    assert {(trial["stage"], trial["reason"].partition(" of ")[0]) for trial in failed} == {
        ("measure", "found a time")
    }
    assert other("db", "merge", str(lied_to.database), "--json").json == {"runs": 0, "trials": 0}
    assert lied_to("db", "merge", str(other.database), "--json").json == {"runs": 0, "trials": 0}
