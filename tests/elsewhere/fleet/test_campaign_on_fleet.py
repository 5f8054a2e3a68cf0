"""A campaign on nodes that compile and time fakes: its trials are those of one machine."""

import dataclasses
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Tuner, require
from tests.cli.real import brief_remeasurement
from tests.elsewhere.fleet.conftest import new_fleet
from tests.elsewhere.fleet.fake_node import started_node
from tests.elsewhere.fleet.values import under_way, work
from tests.support.overlaps import overlaps, repeated
from tests.support.run_differences import differences
from tests.tuning import fakes
from tests.tuning.test_campaign import SHAPES as REAL_SHAPES
from tests.tuning.test_campaign import WRITES, backends, proposed, trials
from tests.tuning.test_fake_campaign import limits, members
from tests.tuning.test_resume import KilledError, Life, MortalStore
from tuner.core.queries import TrialQuery
from tuner.core.requests import FleetRequest
from tuner.db.store import Store
from tuner.elsewhere.fleet import queues, tables
from tuner.elsewhere.fleet.local_fleet import LocalNodes
from tuner.elsewhere.fleet.runner import fleet_backends
from tuner.elsewhere.fleet.server import session
from tuner.targets.registry import real_backends
from tuner.tuning.campaign import begin_campaign, resume_campaign
from tuner.tuning.events import Interruption
from tuner.tuning.tuned_run import TunedCampaign

pytestmark = pytest.mark.postgres
TRIALS = 18
WORKERS = 2  # 3 candidates in flight, as on one device of a fleet
DEVICES = ("device one", "device two")
LIMIT_S = 120.0  # of a start on a busy machine
SHAPES = "- {shape: 8x8x8, name: first, count: 3}\n- {shape: 64x8x8}\n- {shape: 64x64x8}\n"


@pytest.fixture(scope="module")
def url(postgres_server: str) -> Iterator[str]:
    """Gives the address of a fleet with two nodes; each compiles, and measures on a device of its own."""
    url = new_fleet(postgres_server)
    nodes: list[subprocess.Popen[str]] = []
    try:
        nodes += [started_node(url, device=device) for device in DEVICES]
        give_up_s = time.monotonic() + LIMIT_S
        with session(url) as connection:
            while len(tables.stored_nodes(connection)) < len(DEVICES) and time.monotonic() < give_up_s:
                time.sleep(0.02)
        yield url
    finally:
        for node in nodes:
            node.terminate()
        for node in nodes:
            node.communicate(timeout=LIMIT_S)


def begun(store: Any, there: Any, interruption: Interruption) -> TunedCampaign:
    fresh = tuple(
        dataclasses.replace(each, settings=dataclasses.replace(each.settings, workers=WORKERS, fresh=True))
        for each in members()
    )
    return begin_campaign(limits(TRIALS), fresh, there, store, interruption)


def value_of(connection: Any, asked: str, run: str) -> Any:
    return connection.execute(
        f"SELECT {asked} FROM fleet_work WHERE run = %s AND number >= 0 AND stage = 'evaluate'", (run,)
    ).fetchone()[0]


@pytest.fixture(scope="module")
def on_one_machine(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    with Store.open(str(tmp_path_factory.mktemp("calm") / "calm.db")) as store:
        begun(store, backends(), Interruption())
        return proposed(store, 1), trials(store, 1)


@pytest.fixture
def shapes(tmp_path: Path) -> str:
    (tmp_path / "shapes.yaml").write_text(SHAPES)
    return str(tmp_path / "shapes.yaml")


@pytest.fixture
def tuner(tmp_path: Path, url: str) -> Tuner:
    return Tuner(tmp_path / "none.db", fakes.backends(), url)


@pytest.mark.slow
def test_a_campaign_on_a_fleet_finds_the_same_as_here(url: str, on_one_machine: tuple[Any, Any]) -> None:
    with Store.open(url) as store:
        found = begun(store, fleet_backends(backends(), FleetRequest(url)), Interruption())
        assert (found.campaign.status, found.trials) == ("done", TRIALS)
        require_equal(store, found.campaign.id, on_one_machine)
    assert found.has_worked
    with session(url) as connection:
        for each in found.runs:
            assert (each.run.roofline, each.run.baseline is None) == (fakes.ROOFLINE, False)
            assert (overlaps(connection, each.run.uuid), repeated(connection, each.run.uuid)) == ((), 0)
            timed = value_of(connection, "count(DISTINCT number)", each.run.uuid)
            assert timed == each.counts.proposed - each.counts.reused
        assert connection.execute("SELECT count(*) FROM procrastinate_jobs").fetchone() == (0,)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.1, 0.35, 0.6, 0.9])
def test_a_killed_driver_is_followed_by_one_that_goes_on_trial_for_trial(
    url: str, on_one_machine: tuple[Any, Any], share: float
) -> None:
    there = fleet_backends(backends(), FleetRequest(url))
    writes = 5 * TRIALS  # of a whole campaign: proposals, outcomes, seconds
    with Store.open(url) as store:
        life = Life(round(share * writes))
        with pytest.raises(KilledError):
            begun(MortalStore(store, life, WRITES), there, life.interruption)
        campaign = max(each.id for each in store.campaigns())
        assert store.campaign(campaign).status != "done"
        found = resume_campaign(campaign, there, store, Interruption())
        assert found.campaign.status == "done"
        require_equal(store, campaign, on_one_machine)
    with session(url) as connection:
        assert [repeated(connection, each.run.uuid) for each in found.runs] == [0, 0, 0]


@pytest.mark.slow
def test_trials_of_a_campaign_go_to_all_its_devices_by_turns(url: str) -> None:
    with Store.open(url) as store:
        found = begun(store, fleet_backends(backends(), FleetRequest(url, devices=2)), Interruption())
    with session(url) as connection:
        first = "(array_agg(device ORDER BY number))[1]"
        devices = [value_of(connection, first, each.run.uuid) for each in found.runs]
    assert set(devices) == set(DEVICES)
    assert devices[0] == devices[2] != devices[1]


@pytest.mark.slow
def test_the_command_tunes_and_resumes_a_file_of_shapes_on_a_fleet(tuner: Tuner, shapes: str) -> None:
    asked = ("tune", "--shapes", shapes, "--json", "--target", "fake", "--fresh", "--trials")
    done = tuner(*asked, "9", "--fleet")
    assert done.code == 0, done.err
    assert done.json["trials"] == 9
    campaign = done.json["campaign"]
    longer = tuner("tune", "--resume", f"campaign:{campaign}", "--fleet", "--trials", "12", "--json")
    assert (longer.code, longer.json["trials"]) == (0, 12), longer.err
    calm = dataclasses.replace(tuner, url="")
    best = [each["best"]["knobs"] for each in calm(*asked, "12", "--workers", str(WORKERS)).json["problems"]]
    assert [each["best"]["knobs"] for each in longer.json["problems"]] == best


@pytest.mark.slow
def test_an_interrupted_campaign_prints_how_it_goes_on_on_the_fleet(
    tuner: Tuner, shapes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Interruption, "is_asked", property(lambda _self: True))
    done = tuner("tune", "--shapes", shapes, "--fleet", "--target", "fake")
    assert done.code == 130
    require(done.err, "tuner tune --resume campaign:", " --fleet")


@pytest.mark.slow
def test_the_jobs_of_a_campaign_are_taken_back_together(url: str, tuner: Tuner) -> None:
    with Store.open(url) as store, session(url) as connection:
        campaign = begun(store, backends(), Interruption()).campaign
        for run in campaign.runs[:2]:
            queues.defer(connection, "compile:nowhere", work(run.uuid), 0, alone=False)
        done = tuner("fleet", "cancel", f"campaign:{campaign.id}")
        assert (done.code, done.out) == (0, f"cancelled 2 jobs of campaign {campaign.id}\n"), done.err
        assert all(under_way(connection, run.uuid) == set() for run in campaign.runs)


@pytest.mark.slow
def test_without_a_node_for_the_target_no_campaign_is_stored(url: str, tuner: Tuner, shapes: str) -> None:
    with Store.open(url) as store:
        before = len(store.campaigns())
        options = ("--fleet", "--target", "fake", "--machine", "H200")
        assert "fleet: no node measures fake on 'H200'" in tuner.refused("tune", "--shapes", shapes, *options)
        assert len(store.campaigns()) == before


def require_equal(store: Store, campaign: int, expected: tuple[Any, Any]) -> None:
    order, outcomes = expected
    assert proposed(store, campaign) == order
    for one, other in zip(outcomes, trials(store, campaign), strict=True):
        assert [each.text for each in differences(one, other)] == []


# With a real compiler; the driver is killed by SIGKILL.

KILLED_TRIALS = 7
KILLED_AFTER = 4  # proposals


@pytest.mark.mlir
@pytest.mark.slow
def test_a_campaign_whose_driver_is_killed_goes_on_with_its_trials(fleet_url: str, tmp_path: Path) -> None:
    file = tmp_path / "shapes.yaml"
    file.write_text(REAL_SHAPES)
    tune = ("tune", "--shapes", str(file), "--fleet", "--target", "cpu", "--trials", str(KILLED_TRIALS))
    with LocalNodes(fleet_url, "cpu", tmp_path) as nodes, Store.open(fleet_url) as store:
        nodes.start("both", "--compile", "1", "--measure")
        nodes.wait_until_ready("both")
        nodes.start_command("driver", (*tune, "--db", fleet_url))
        give_up_s = time.monotonic() + LIMIT_S
        while store.info().trials < KILLED_AFTER and not nodes.has_ended("driver"):
            assert time.monotonic() < give_up_s, nodes.said("driver")
            time.sleep(0.01)
        nodes.kill("driver")
        before = store.campaign_proposals(1)
        assert len(before) >= KILLED_AFTER, nodes.said("driver")
        tuner = Tuner(tmp_path / "none.db", real_backends(), fleet_url)
        with brief_remeasurement():
            done = tuner("tune", "--resume", "campaign:1", "--fleet", "--json")
        assert done.code == 0, (done.err, store.trials(TrialQuery(status="failed")))
        assert (done.json["status"], done.json["trials"]) == ("done", KILLED_TRIALS)
        for one, other in zip(before, store.campaign_proposals(1), strict=False):
            assert (one.number, one.run, one.column) == (other.number, other.run, other.column)
            assert one.proposal.candidate == other.proposal.candidate
            if one.proposal.trial is not None:
                assert one.proposal.trial.record == fakes.present(other.proposal.trial).record
        assert done.json["total_s"] > 0
        with session(fleet_url) as connection:
            for run in store.campaign(1).runs:
                assert (overlaps(connection, run.uuid), repeated(connection, run.uuid)) == ((), 0)
                assert run.baseline is not None


QUANTIZED_SHAPES = """shapes:
  - {shape: 1x64x64, weights: i4-g32-f16-a8group}
  - {shape: 2x48x64, weights: constant}
"""


@pytest.mark.mlir
@pytest.mark.slow
def test_a_campaign_of_packed_weights_runs_on_a_fleet(fleet_url: str, tmp_path: Path) -> None:
    file = tmp_path / "shapes.yaml"
    file.write_text(QUANTIZED_SHAPES)
    tuner = Tuner(tmp_path / "none.db", real_backends(), fleet_url)
    with LocalNodes(fleet_url, "cpu", tmp_path) as nodes, Store.open(fleet_url) as store:
        nodes.start("both", "--compile", "1", "--measure")
        nodes.wait_until_ready("both")
        with brief_remeasurement():
            done = tuner(
                "tune", "--shapes", str(file), "--fleet", "--target", "cpu", "--trials", "3", "--json"
            )
        assert done.code == 0, done.err
        assert (done.json["status"], done.json["trials"]) == ("done", 3)
        assert all(run.roofline is not None for run in store.campaign(1).runs)
