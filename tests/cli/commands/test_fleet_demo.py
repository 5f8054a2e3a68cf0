"""The demo from a real server to its end, on a recording: seconds rather than minutes."""

import tempfile
from pathlib import Path

import pytest

from tests.cli.conftest import Tuner
from tuner.fleet import local_postgres

pytestmark = pytest.mark.postgres
ROOT = Path(__file__).parents[3]
RECORDING = "replay:tuner/space/recorded/matmul_48x64x40.t4.json.gz"
# As the page and the help have it: tests/docs/test_examples.py compares.
DEMO = ("fleet", "demo", "matmul", "48x64x40", "--target", RECORDING, "--trials", "4")
PRINTED = (DEMO,)
EVERYBODY = 0o755  # may enter: the server has a user of its own


@pytest.mark.slow
def test_the_demo_tunes_shows_the_fleet_and_leaves_nothing(
    tuner: Tuner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    with tempfile.TemporaryDirectory() as folder:  # short, unlike pytest's: a socket's path is limited
        Path(folder).chmod(EVERYBODY)
        with monkeypatch.context() as changed:
            changed.setattr("tempfile.tempdir", folder)
            done = tuner(*DEMO)
        assert list(Path(folder).iterdir()) == []
    assert done.code == 0, done.err
    assert "4 trials: 4 measured, 0 failed" in done.out
    assert "--db" not in done.out  # nothing to type that asks a database which is gone
    assert "nodes and server have ended; their folders are gone" in done.err


def test_a_machine_without_postgresql_says_what_is_missing(
    tuner: Tuner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(local_postgres, "PACKAGED", tmp_path)
    done = tuner("fleet", "demo")
    assert done.code == 1
    assert (
        f"no PostgreSQL server: found no initdb under {tmp_path}; install the package postgresql" in done.err
    )


def test_a_demo_without_trials_is_refused(tuner: Tuner) -> None:
    assert "trials: found 0, allowed 1 or more" in tuner("fleet", "demo", "--trials", "0").err
