"""A campaign on real nodes and a real compiler: its driver is killed by SIGKILL, another one goes on."""

import time
from pathlib import Path

import pytest

from benchmarks.fleet.overlaps import overlaps, repeated
from tests.cli.conftest import Tuner
from tests.cli.real import brief_remeasurement
from tuner.core.requests import CampaignProposal
from tuner.core.runs import TrialQuery
from tuner.db.store import Store
from tuner.fleet.local_fleet import LocalNodes
from tuner.fleet.server import session
from tuner.targets.registry import real_backends

pytestmark = [pytest.mark.postgres, pytest.mark.mlir]
TRIALS = 7
KILLED_AFTER = 4  # proposals
GIVE_UP_S = 120.0
SHAPES = "- {shape: 16x32x16, count: 3}\n- {shape: 1x48x32, layout: nt}\n- {shape: 2x8x16x8, dtype: f64}\n"


@pytest.mark.slow
def test_a_campaign_whose_driver_is_killed_goes_on_with_its_trials(fleet_url: str, tmp_path: Path) -> None:
    shapes = tmp_path / "shapes.yaml"
    shapes.write_text(SHAPES)
    tune = ("tune", "--shapes", str(shapes), "--fleet", "--target", "cpu", "--trials", str(TRIALS))
    with LocalNodes(fleet_url, "cpu", tmp_path) as nodes, Store.open(fleet_url) as store:
        nodes.start("both", "--compile", "1", "--measure")
        nodes.wait_until_ready("both")
        nodes.start_command("driver", (*tune, "--db", fleet_url))
        give_up_s = time.monotonic() + GIVE_UP_S
        while store.info().trials < KILLED_AFTER and not nodes.has_ended("driver"):
            assert time.monotonic() < give_up_s, nodes.said("driver")
            time.sleep(0.01)
        nodes.kill("driver")
        before = store.campaign_proposals(1)
        assert len(before) >= KILLED_AFTER, nodes.said("driver")
        with brief_remeasurement():
            done = Tuner(tmp_path / "none.db", real_backends(), fleet_url)(
                "tune", "--resume", "campaign:1", "--fleet", "--json"
            )
        assert done.code == 0, (done.err, store.trials(TrialQuery(status="failed")))
        assert (done.json["status"], done.json["trials"]) == ("done", TRIALS)
        require_same(before, store.campaign_proposals(1))
        assert done.json["total_s"] > 0
        with session(fleet_url) as connection:
            for run in store.campaign(1).runs:
                assert overlaps(connection, run.uuid) == ()
                assert repeated(connection, run.uuid) == 0
                assert run.baseline is not None


def require_same(before: tuple[CampaignProposal, ...], after: tuple[CampaignProposal, ...]) -> None:
    for one, other in zip(before, after, strict=False):
        assert (one.number, one.run, one.column) == (other.number, other.run, other.column)
        assert one.proposal.candidate == other.proposal.candidate
        if one.proposal.trial is not None:
            assert other.proposal.trial is not None
            assert one.proposal.trial.record == other.proposal.trial.record
