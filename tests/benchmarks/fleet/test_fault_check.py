"""Every part of a fleet fails in the middle of a run, which ends as one that nothing happened to."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from benchmarks.fleet.fault_check import FleetCheck, check_fleet
from benchmarks.fleet.fault_injection import FAULTS
from tests.fleet.conftest import LEASE_S
from tests.fleet.recorded_runs import RECORDING, calm_trials, replayed
from tests.postgres_server import server_or_skip
from tuner.fleet.install import install
from tuner.fleet.tables import FleetSettings

TRIALS = 56  # more than all faults last


@pytest.fixture
def url() -> Iterator[str]:
    """Gives a fleet on a server of its own, which is killed."""
    with server_or_skip() as url:
        install(url, FleetSettings(LEASE_S))
        yield url


@pytest.mark.postgres
@pytest.mark.slow
def test_a_run_survives_every_fault(url: str, tmp_path: Path) -> None:
    settings = replayed(trials=TRIALS, sampler="random")
    calm = calm_trials(settings, tmp_path)
    check = check_fleet(url, settings, RECORDING, calm, np.random.default_rng(0))
    assert set(check.faults) == set(FAULTS)
    assert check.trials == TRIALS
    assert check.is_exact, check
    assert " jobs wait for " in check.untrusted


def test_a_check_is_exact_if_no_more_was_repeated_than_failed() -> None:
    def found(repeated: int = 0, overlaps: int = 0, orphans: int = 0, strange: int = 0) -> FleetCheck:
        return FleetCheck("tpe", ("driver killed",), 9, (), repeated, overlaps, orphans, strange, "")

    assert found(repeated=1).is_exact
    for wrong in (found(repeated=2), found(overlaps=1), found(orphans=1), found(strange=1)):
        assert not wrong.is_exact
