from pathlib import Path

from tests.cli.conftest import Tuner
from tests.tuning import fakes


def test_info_tells_what_a_database_holds(tuned: Tuner) -> None:
    done = tuned("db", "info")
    assert "1 run, 20 trials" in done.out
    assert "matmul 8x8x8 f32 nn none" in done.out
    document = tuned("db", "info", "--json").json
    assert (document["runs"], document["trials"]) == (1, 20)
    assert document["url"].endswith("results.db")


def test_upgrade_tells_the_revision(tuner: Tuner) -> None:
    revision = tuner("db", "info", "--json").json["revision"]
    assert f"revision {revision}" in tuner("db", "upgrade").out
    assert tuner("db", "upgrade", "--json").json["revision"] == revision


def test_merge_adds_once(tuned: Tuner, tmp_path: Path) -> None:
    other = Tuner(tmp_path / "other.db", fakes.composition())
    assert "added 1 run and 20 trials" in other("db", "merge", str(tuned.database)).out
    assert other("db", "merge", str(tuned.database), "--json").json == {"runs": 0, "trials": 0}
    assert len(other("history", "--json").json) == 20


def test_merge_of_no_database_exits_with_2(tuner: Tuner) -> None:
    done = tuner("db", "merge", "none.db")
    assert done.code == 2
    assert "none.db" in done.err
