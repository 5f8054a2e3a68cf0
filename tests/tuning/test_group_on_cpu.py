"""A campaign on this machine's processor: children shared by all problems, killed and resumed."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Tuner
from tests.cli.real import brief_remeasurement, real_candidates
from tuner.core.records import Measurement
from tuner.core.runs import TrialQuery
from tuner.db.store import Store
from tuner.tuning.campaign import resume_campaign
from tuner.tuning.events import Interruption

TRIALS = 7
KILLED_AFTER = 4  # proposals
GIVE_UP_S = 120.0  # longer than a start on a busy machine takes
THREADS = 2
SHAPES = "- {shape: 16x32x16, count: 3}\n- {shape: 1x48x32, layout: nt}\n- {shape: 2x8x16x8, dtype: f64}\n"


def killed_after(proposals: int, database: Path, *options: str) -> None:
    """Runs ``tuner tune`` with the options, and kills it by SIGKILL once it has stored so many proposals."""
    with (
        Store.open(str(database)) as store,
        subprocess.Popen(
            [sys.executable, "-m", "tuner", "tune", *options, "--db", str(database), "--json"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        ) as child,
    ):
        give_up_s = time.monotonic() + GIVE_UP_S
        while store.info().trials < proposals and child.poll() is None:
            assert time.monotonic() < give_up_s
            time.sleep(0.01)
        child.kill()
        _, said = child.communicate()
    assert child.returncode == -signal.SIGKILL, said


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """Gives a database with a campaign that was killed by SIGKILL after some proposals."""
    shapes, database = tmp_path / "shapes.yaml", tmp_path / "results.db"
    shapes.write_text(SHAPES)
    options = ("--shapes", str(shapes), "--trials", str(TRIALS), "--workers", "2", "--target", "cpu")
    killed_after(KILLED_AFTER, database, *options)
    return database


@pytest.mark.slow
@pytest.mark.mlir
def test_a_killed_campaign_goes_on_with_its_stored_trials(killed: Path) -> None:
    with Store.open(str(killed)) as store:
        before = store.campaign_proposals(1)
        assert len(before) >= KILLED_AFTER
        assert store.campaign(1).status == "interrupted"  # as the reader finds: the kill told nobody
        with brief_remeasurement():
            tuned = resume_campaign(1, real_candidates(), store, Interruption())
        after = store.campaign_proposals(1)
        assert (tuned.campaign.status, len(after)) == ("done", TRIALS)
        for one, other in zip(before, after, strict=False):
            assert (one.number, one.run, one.column) == (other.number, other.run, other.column)
            assert one.proposal.candidate == other.proposal.candidate
            if one.proposal.trial is not None:
                assert one.proposal.trial.record == other.proposal.trial.record  # type: ignore[union-attr]
        assert tuned.has_worked, [trial.record.outcome for trial in store.trials(TrialQuery(status="failed"))]
        assert tuned.total_s is not None
        assert [run.counts.proposed >= 1 for run in tuned.runs] == [True] * 3


@pytest.mark.mlir
def test_kernels_of_a_campaign_are_divided_among_threads(tmp_path: Path) -> None:
    usable = real_candidates().processors().usable
    if usable < THREADS:
        pytest.skip(f"{usable} processor, {THREADS} threads")
    shapes = tmp_path / "shapes.yaml"
    shapes.write_text("- {shape: 32x64x16}\n- {shape: 64x32x32, layout: nt}\n")
    tuner = Tuner(tmp_path / "results.db", real_candidates())
    options = ("--trials", "6", "--threads", str(THREADS), "--workers", "1", "--target", "cpu")
    with brief_remeasurement():
        done = tuner("tune", "--shapes", str(shapes), *options, "--json")
    assert done.code == 0, done.err
    with Store.open(str(tuner.database)) as store:
        for run in store.campaign(1).runs:
            assert run.settings.threads == THREADS
            trials = store.trials(TrialQuery(run=run.id))
            timed = [each for each in trials if isinstance(each.record.outcome, Measurement)]
            assert timed, [each.record.outcome for each in trials]
            assert {each.threads for each in timed} == {THREADS}
            splits = {dict(each.record.candidate.choices)["split"] for each in timed}
            assert splits & {"n", "m"}, splits
