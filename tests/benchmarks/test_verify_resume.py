import os
import re
import subprocess
from pathlib import Path

import pytest

from benchmarks import resumed_runs, verify_resume
from benchmarks.fleet import verify_resume as on_fleet
from benchmarks.fleet.fault_check import FleetCheck
from benchmarks.resumed_runs import ResumeCheck
from tests.cli.conftest import Tuner, require
from tests.fakes import children_of
from tests.space.recorded import values
from tests.support.run_differences import differences
from tests.trials import measurement, trial
from tuner.core.errors import TunerError
from tuner.core.runs import RunSettings
from tuner.db.store import Store
from tuner.targets.replay import ReplayEvaluator

ON_FLEET = "verify-resume --fleet --runs 1"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("--runs 0", "runs: found 0, allowed 1 or more"),
        ("--trials -3", "trials: found -3, allowed 1 or more"),
        ("--seed -1", "seed: found -1, allowed 0 or more"),
        ("--sampler guess", "sampler: found 'guess', allowed"),
        ("--file nowhere.json", "nowhere.json: cannot be read"),
    ],
)
def test_what_it_cannot_do_is_refused(tuner: Tuner, command: str, message: str) -> None:
    assert message in tuner.refused(f"verify-resume {command}")


@pytest.mark.slow
def test_a_run_killed_by_the_kernel_resumes_exactly(tuner: Tuner) -> None:
    done = tuner.done("verify-resume --runs 1 --sampler tpe --trials 25")  # as in the help
    assert re.search(r"^runs         1, killed [1-3] times? by SIGKILL in ", done.out, re.MULTILINE)
    assert "trials       25, each compared with that of a run nobody killed\n" in done.out
    assert done.out.endswith("differences  0\n")


@pytest.mark.parametrize("sampler", ["random", "optuna:random"])
def test_a_recording_of_ones_own_can_be_used(
    tuner: Tuner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sampler: str
) -> None:
    seen = []

    def check(settings: object, file: Path, uninterrupted: tuple[object, ...], *_rest: object) -> ResumeCheck:
        seen.append((settings, file, len(uninterrupted)))
        return ResumeCheck("random", 2, len(uninterrupted), ())

    monkeypatch.setattr(verify_resume, "check_resume", check)
    file = values.write_recording(tmp_path)
    done = tuner.done("verify-resume --file", str(file), "--runs", "2", "--sampler", sampler, "--trials", "5")
    require(done.out, "differences  0", "killed 4 times")
    assert [(each, count) for _, each, count in seen] == [(file, 5)] * 2


def test_any_difference_exits_with_1_ctrl_c_is_none(tuner: Tuner, monkeypatch: pytest.MonkeyPatch) -> None:
    found = differences((trial(0, measurement(1.0)),), (trial(0, measurement(2.0)),))
    monkeypatch.setattr(verify_resume, "check_resume", lambda *_text: ResumeCheck("tpe", 1, 1, found))
    done = tuner.failed("verify-resume --runs 1 --sampler tpe --trials 2")
    require(done.out, "differences  1", "trial 0: outcome: ")
    as_json = tuner("verify-resume --runs 1 --sampler tpe --trials 2 --json")
    assert (as_json.code, as_json.json["differences"], len(as_json.json["found"])) == (1, 1, 1)

    def interrupted(*_text: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ReplayEvaluator, "measure", interrupted)
    done = tuner("verify-resume --runs 1 --sampler random --trials 3")
    assert (done.code, done.out) == (130, "")


def test_fault_injection_on_a_fleet_gets_what_was_asked(
    tuner: Tuner, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = []

    def checks(_backends: object, file: Path, settings: list[RunSettings], *numbers: int) -> list[FleetCheck]:
        checked.append((file.name, [(each.sampler, each.trials) for each in settings], numbers))
        return [FleetCheck("tpe", ("driver killed",), 1, (), 2, 0, 0, 0, "")]

    monkeypatch.setattr(on_fleet, "fleet_checks", checks)
    done = tuner(ON_FLEET, "--sampler", "tpe", "--json")
    assert (done.code, done.json["faults"], done.json["repeated"]) == (1, 1, 2)
    assert tuner(ON_FLEET, "--sampler", "guess").code == 2
    assert checked == [(verify_resume.SHIPPED, [("tpe", 40)], (1, 0))]


def test_a_child_that_fails_is_reported_with_its_last_words() -> None:
    options = ["sh", "-c", "echo tuner: disk is full >&2; exit 1"]
    child = subprocess.Popen(options, stderr=subprocess.PIPE, text=True)
    with pytest.raises(TunerError, match=r"exited with 1 after .* s: tuner: disk is full"):
        resumed_runs._finish(child)  # noqa: SLF001 - nothing else can make a child fail on purpose


def test_ctrl_c_leaves_no_child_behind(tuner: Tuner, monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(children_of(os.getpid()))
    seen = []

    def interrupted(_store: Store) -> int:
        seen.append(set(children_of(os.getpid())) - before)
        raise KeyboardInterrupt

    monkeypatch.setattr(resumed_runs, "_proposed", interrupted)
    assert tuner("verify-resume --runs 1 --sampler random --trials 30").code == 130
    assert len(seen[0]) == 1
    assert set(children_of(os.getpid())) <= before
