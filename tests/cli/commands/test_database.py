from pathlib import Path

from tests.cli.conftest import Tuner, require, require_fields
from tests.tuning import fakes


def test_info_and_upgrade_report_the_revision_and_what_a_database_holds(tuned: Tuner) -> None:
    require(tuned("db info").out, "1 run, 20 trials", "matmul 8x8x8 f32 nn none")
    document = tuned("db info --json").json
    require_fields(document, runs=1, trials=20)
    assert document["url"].endswith("results.db")
    revision = document["revision"]
    assert f"revision {revision}" in tuned("db upgrade").out
    assert tuned("db upgrade --json").json["revision"] == revision


def test_merge_adds_once_and_backup_writes_a_new_file_only(tuned: Tuner, tmp_path: Path) -> None:
    other = Tuner(tmp_path / "other.db", fakes.backends())
    assert "added 1 run and 20 trials" in other("db merge", str(tuned.database)).out
    assert other("db merge", str(tuned.database), "--json").json == {"runs": 0, "trials": 0}
    assert len(other("history --json").json) == 20
    file = tmp_path / "copy.db"
    assert tuned("db backup", str(file)).out.startswith(f"wrote {file}, a copy of sqlite:///")
    assert len(Tuner(file, fakes.backends())("history", "--json").json) == 20
    assert tuned("db backup", str(file)).code == 2
    assert tuned("db backup", str(tmp_path / "second.db"), "--json").json["file"].endswith("second.db")


def test_prune_leaves_later_runs_and_keeps_the_answer(tuned: Tuner) -> None:
    said = tuned("db prune --before 2001-01-01").out
    assert said == "deleted 0 trials, 0 scripts and 0 programs\n"
    before = tuned("history --best --json").json
    assert tuned.done("db prune").out.startswith("deleted 12 trials, ")
    assert tuned("history --best --json").json == before
    assert tuned("show run:1 --json").json["best"] is not None
    assert tuned("db prune --json").json == {"trials": 0, "scripts": 0, "programs": 0}
