from pathlib import Path

from tests.cli.conftest import Tuner
from tests.tuning import fakes


def test_info_reports_what_a_database_holds(tuned: Tuner) -> None:
    done = tuned("db", "info")
    assert "1 run, 20 trials" in done.out
    assert "matmul 8x8x8 f32 nn none" in done.out
    document = tuned("db", "info", "--json").json
    assert (document["runs"], document["trials"]) == (1, 20)
    assert document["url"].endswith("results.db")


def test_upgrade_reports_the_revision(tuner: Tuner) -> None:
    revision = tuner("db", "info", "--json").json["revision"]
    assert f"revision {revision}" in tuner("db", "upgrade").out
    assert tuner("db", "upgrade", "--json").json["revision"] == revision


def test_merge_adds_once(tuned: Tuner, tmp_path: Path) -> None:
    other = Tuner(tmp_path / "other.db", fakes.backends())
    assert "added 1 run and 20 trials" in other("db", "merge", str(tuned.database)).out
    assert other("db", "merge", str(tuned.database), "--json").json == {"runs": 0, "trials": 0}
    assert len(other("history", "--json").json) == 20


def test_prune_keeps_the_answer(tuned: Tuner) -> None:
    before = tuned("history", "--best", "--json").json
    done = tuned("db", "prune")
    assert done.code == 0
    assert done.out.startswith("deleted 12 trials, ")
    assert tuned("history", "--best", "--json").json == before
    assert tuned("show", "run:1", "--json").json["best"] is not None
    assert tuned("db", "prune", "--json").json == {"trials": 0, "scripts": 0, "programs": 0}


def test_prune_leaves_later_runs(tuned: Tuner) -> None:
    done = tuned("db", "prune", "--before", "2001-01-01")
    assert done.out == "deleted 0 trials, 0 scripts and 0 programs\n"


def test_backup_writes_a_new_file_only(tuned: Tuner, tmp_path: Path) -> None:
    file = tmp_path / "copy.db"
    done = tuned("db", "backup", str(file))
    assert done.out.startswith(f"wrote {file}, a copy of sqlite:///")
    assert len(Tuner(file, fakes.backends())("history", "--json").json) == 20
    assert tuned("db", "backup", str(file)).code == 2
    assert tuned("db", "backup", str(tmp_path / "second.db"), "--json").json["file"].endswith("second.db")
