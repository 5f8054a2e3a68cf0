"""Parts of a fleet fail in the middle of a run, which ends as one that nothing happened to."""

import contextlib
import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleet.conftest import LEASE_S
from tests.fleet.nodes import RECORDING, calm_trials, replayed, trials_of
from tuner.analysis.run_difference import differences
from tuner.fleet.drill import FAULTS, Drill
from tuner.fleet.install import install
from tuner.fleet.local_nodes import LocalNodes
from tuner.fleet.local_postgres import NoServerError, server
from tuner.fleet.overlaps import overlaps, repeated
from tuner.fleet.server import session
from tuner.fleet.settings import FleetSettings

pytestmark = pytest.mark.postgres
MORE_THAN_ANY_DISK = ("--keep-free", str(1 << 40))  # MiB
TOGETHER = {"driver killed"}  # with what happened before it: both are away until the lease ends


@pytest.fixture
def url() -> Iterator[str]:
    """Gives a fleet on a server of its own, which is killed."""
    with contextlib.ExitStack() as stack:
        try:
            url = stack.enter_context(server())
        except NoServerError as error:
            pytest.skip(str(error))
        install(url, FleetSettings(LEASE_S))
        yield url


@pytest.fixture
def altered(tmp_path: Path) -> str:
    """Returns a target of the same name whose code is made otherwise."""
    copy = tmp_path / "altered" / RECORDING.name
    copy.parent.mkdir()
    copy.write_bytes(gzip.compress(gzip.decompress(RECORDING.read_bytes()) + b"\n"))
    return f"replay:{copy}"


def test_a_run_survives_every_fault(url: str, altered: str, tmp_path: Path) -> None:
    settings = replayed(trials=36)
    with LocalNodes(url, f"replay:{RECORDING}", tmp_path) as nodes:
        nodes.start("stranger", "--compile", "1", target=altered)
        with Drill(url, nodes, *MORE_THAN_ANY_DISK) as drill:
            run = drill.begin(settings, RECORDING)
            drill.wait_for_full_disk()
            for name, fault in FAULTS.items():
                if name not in TOGETHER:
                    drill.wait_for_judged(2)
                fault(drill)
            drill.finish()
    assert nodes.orphans() == ()
    assert differences(calm_trials(settings, tmp_path), trials_of(url, run.id)) == ()
    assert "MiB free, allowed" in nodes.last_line("node1")
    assert "jobs wait for tuner" in nodes.said("stranger")
    with session(url) as connection:
        assert overlaps(connection, run.uuid) == ()
        assert repeated(connection, run.uuid) <= len(FAULTS)
        assert connection.execute("SELECT count(*) FROM procrastinate_jobs").fetchone() == (0,)
        worked = connection.execute("SELECT count(*) FROM fleet_work WHERE node IN ('stranger', 'node1')")
        assert worked.fetchone() == (0,)
