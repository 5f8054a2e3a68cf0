import contextlib
import json

import pytest

from benchmarks.fleet import verify_resume
from benchmarks.fleet.fault_check import FleetCheck
from benchmarks.fleet.verify_resume import main
from tests.fleet.conftest import new_database
from tests.fleet.recorded_runs import RECORDING
from tuner.fleet import local_postgres

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
    """The faults themselves are injected in test_fault_check.py."""
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
