import os
import re
import subprocess
from pathlib import Path

import pytest

from benchmarks.fleet.verify_resume import arguments
from tests.cli.conftest import Tuner, require, require_fields
from tests.fakes import children_of
from tests.source_files import ROOT
from tests.space.recorded import values
from tests.trials import measurement, trial
from tests.tuning import fakes
from tuner.cli.commands import database
from tuner.cli.commands.database import ResumeCheck
from tuner.core.errors import TunerError
from tuner.db.store import Store
from tuner.results.differences import differences
from tuner.targets.replay import ReplayEvaluator


def test_info_and_upgrade_report_the_revision_and_what_a_database_holds(tuned: Tuner) -> None:
    require(tuned("db info").out, "1 run, 20 trials", "matmul 8x8x8 f32 nn none")
    document = tuned("db info --json").json
    require_fields(document, runs=1, trials=20)
    assert document["url"].endswith("results.db")
    revision = document["revision"]
    assert f"revision {revision}" in tuned("db upgrade").out
    assert tuned("db upgrade --json").json["revision"] == revision


def test_merge_adds_once_and_backup_writes_a_new_file_only(tuned: Tuner, tmp_path: Path) -> None:
    other = Tuner(tmp_path / "other.db", fakes.backends())
    assert "added 1 run and 20 trials" in other("db merge", str(tuned.database)).out
    assert other("db merge", str(tuned.database), "--json").json == {"runs": 0, "trials": 0}
    assert len(other("history --json").json) == 20
    file = tmp_path / "copy.db"
    assert tuned("db backup", str(file)).out.startswith(f"wrote {file}, a copy of sqlite:///")
    assert len(Tuner(file, fakes.backends())("history", "--json").json) == 20
    assert tuned("db backup", str(file)).code == 2
    assert tuned("db backup", str(tmp_path / "second.db"), "--json").json["file"].endswith("second.db")


def test_prune_leaves_later_runs_and_keeps_the_answer(tuned: Tuner) -> None:
    said = tuned("db prune --before 2001-01-01").out
    assert said == "deleted 0 trials, 0 scripts and 0 programs\n"
    before = tuned("history --best --json").json
    assert tuned.done("db prune").out.startswith("deleted 12 trials, ")
    assert tuned("history --best --json").json == before
    assert tuned("show run:1 --json").json["best"] is not None
    assert tuned("db prune --json").json == {"trials": 0, "scripts": 0, "programs": 0}


# Real processes, really killed. As the pages and the help have them: tests/docs/test_examples.py compares.
IN_HELP = ("verify-resume", "--runs", "1", "--sampler", "tpe", "--trials", "25")
ON_FLEET = ("verify-resume", "--fleet", "--runs", "1")
PRINTED = (IN_HELP, ON_FLEET)


@pytest.mark.slow
def test_a_run_killed_by_the_kernel_resumes_exactly(tuner: Tuner) -> None:
    done = tuner.done(*IN_HELP)
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

    monkeypatch.setattr(database, "check_resume", check)
    file = values.write_recording(tmp_path)
    done = tuner.done("verify-resume --file", str(file), "--runs", "2", "--sampler", sampler, "--trials", "5")
    require(done.out, "differences  0", "killed 4 times")
    assert [(each, count) for _, each, count in seen] == [(file, 5)] * 2


def test_any_difference_exits_with_1_ctrl_c_is_none(tuner: Tuner, monkeypatch: pytest.MonkeyPatch) -> None:
    found = differences((trial(0, measurement(1.0)),), (trial(0, measurement(2.0)),))
    monkeypatch.setattr(database, "check_resume", lambda *_text: ResumeCheck("tpe", 1, 1, found))
    done = tuner.failed("verify-resume --runs 1 --sampler tpe --trials 2")
    require(done.out, "differences  1", "trial 0: outcome: ")
    as_json = tuner("verify-resume --runs 1 --sampler tpe --trials 2 --json")
    assert (as_json.code, as_json.json["differences"], len(as_json.json["found"])) == (1, 1, 1)

    def interrupted(*_text: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ReplayEvaluator, "measure", interrupted)
    done = tuner("verify-resume --runs 1 --sampler random --trials 3")
    assert (done.code, done.out) == (130, "")


def test_fault_injection_on_a_fleet_is_run_in_a_clone_only(
    tuner: Tuner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    started: list[list[str]] = []

    def run(command: list[str], cwd: Path, check: bool) -> "subprocess.CompletedProcess[str]":
        started.append(command)
        return subprocess.CompletedProcess(command, 1)

    monkeypatch.setattr(database, "CLONE", ROOT)
    monkeypatch.setattr(subprocess, "run", run)
    assert tuner(*ON_FLEET, "--sampler", "tpe", "--json").code == 1
    assert tuner(*ON_FLEET, "--sampler", "guess").code == 2
    (command,) = started
    assert command[1:3] == ["-m", "benchmarks.fleet.verify_resume"]
    asked = arguments(command[3:])
    assert (asked.runs, asked.trials, asked.seed, asked.sampler, asked.json) == (1, 40, 0, ["tpe"], True)
    assert asked.file.name == database.SHIPPED
    monkeypatch.setattr(database, "CLONE", tmp_path)
    message = "--fleet: missing benchmarks/fleet: run it in a clone of the repository"
    assert message in tuner.refused(*ON_FLEET)


def test_a_child_that_fails_is_reported_with_its_last_words() -> None:
    options = ["sh", "-c", "echo tuner: disk is full >&2; exit 1"]
    child = subprocess.Popen(options, stderr=subprocess.PIPE, text=True)
    with pytest.raises(TunerError, match=r"exited with 1 after .* s: tuner: disk is full"):
        database._finish(child)  # noqa: SLF001 - nothing else can make a child fail on purpose


def test_ctrl_c_leaves_no_child_behind(tuner: Tuner, monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(children_of(os.getpid()))
    seen = []

    def interrupted(_store: Store) -> int:
        seen.append(set(children_of(os.getpid())) - before)
        raise KeyboardInterrupt

    monkeypatch.setattr(database, "_proposed", interrupted)
    assert tuner("verify-resume --runs 1 --sampler random --trials 30").code == 130
    assert len(seen[0]) == 1
    assert set(children_of(os.getpid())) == before
