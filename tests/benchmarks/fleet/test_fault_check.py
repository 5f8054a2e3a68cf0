"""Every part of a fleet fails in the middle of a run, which ends as one that nothing happened to."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from benchmarks.fleet import verify_resume
from benchmarks.fleet.fault_check import FleetCheck, check_fleet
from benchmarks.fleet.fault_injection import FAULTS
from benchmarks.fleet.verify_resume import main
from tests.fleet.conftest import LEASE_S, new_database
from tests.fleet.recorded_runs import RECORDING, calm_trials, replayed
from tests.postgres_server import server_or_skip
from tuner.fleet import local_postgres
from tuner.fleet.install import install
from tuner.fleet.tables import FleetSettings

TRIALS = 56  # more than all faults last


@pytest.fixture
def killed_url() -> Iterator[str]:
    """Gives a fleet on a server of its own, which is killed."""
    with server_or_skip() as url:
        install(url, FleetSettings(LEASE_S))
        yield url


@pytest.mark.postgres
@pytest.mark.slow
def test_a_run_survives_every_fault(killed_url: str, tmp_path: Path) -> None:
    settings = replayed(trials=TRIALS, sampler="random")
    calm = calm_trials(settings, tmp_path)
    check = check_fleet(killed_url, settings, RECORDING, calm, np.random.default_rng(0))
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


WORDS = ("--runs", "1", "--sampler", "tpe", "--trials", "2", "--seed", "0", "--file", str(RECORDING))


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize(("repeated", "code"), [(2, 0), (3, 1)])
def test_what_became_of_runs_on_a_fleet_is_reported(
    postgres_server: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    repeated: int,
    code: int,
) -> None:
    """The faults themselves are injected in test_a_run_survives_every_fault."""
    check = FleetCheck("tpe", ("driver killed", "database killed"), 2, (), repeated, 0, 0, 0, "")
    url = new_database(postgres_server)
    monkeypatch.setattr(verify_resume, "server", lambda: contextlib.nullcontext(url))
    monkeypatch.setattr(verify_resume, "check_fleet", lambda *_text: check)
    assert main(WORDS) == code
    out, err = capsys.readouterr()
    assert "1/1 tpe: driver killed, database killed, 2 trials, 0 differences" in err
    assert "runs         1 with 2 faults" in out
    assert f"done again   {repeated} pieces" in out
    assert main((*WORDS, "--json")) == code
    assert json.loads(capsys.readouterr().out)["repeated"] == repeated


def test_a_machine_without_postgresql_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: object
) -> None:
    pytest.importorskip("procrastinate")
    monkeypatch.setattr(local_postgres, "PACKAGED", tmp_path)
    assert main(WORDS) == 1
    assert "error: no PostgreSQL server: found no initdb under" in capsys.readouterr().err
