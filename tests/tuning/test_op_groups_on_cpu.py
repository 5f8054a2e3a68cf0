"""Campaigns of a program tuned on this machine: killed and resumed, and one whose candidates hang."""

import dataclasses
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.real import brief_remeasurement, real_candidates
from tests.op_group_problems import fusion_problems, program_text
from tests.tuning import fakes
from tuner.core.candidate import TargetName
from tuner.core.errors import Failure, Stage
from tuner.core.problem import WEIGHTS_COLD, Problem
from tuner.core.records import Measurement
from tuner.core.requests import CampaignProposal, RunRequest
from tuner.core.runs import TrialQuery
from tuner.db.store import Store
from tuner.runtime.workers.protocol import Factory, Limits
from tuner.targets.backends import Backends
from tuner.targets.children import child_runners
from tuner.targets.cpu import target as cpu
from tuner.targets.interface import RunnerChildren
from tuner.tuning.campaign import NamedProblem, begin_campaign, campaign_settings, resume_campaign
from tuner.tuning.events import Interruption

pytestmark = pytest.mark.mlir

TRIALS = 6
KILLED_AFTER = 3  # proposals
GIVE_UP_S = 120.0  # longer than a start on a busy machine takes


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """Gives a database with the campaigns of a program, killed by SIGKILL after some proposals."""
    program, database = tmp_path / "program.mlir", tmp_path / "results.db"
    program.write_text(program_text())
    options = ("--trials", str(TRIALS), "--workers", "1", "--target", "cpu", "--db", str(database))
    with (
        Store.open(str(database)) as store,
        subprocess.Popen(
            [sys.executable, "-m", "tuner", "tune", str(program), *options, "--json"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        ) as child,
    ):
        give_up_s = time.monotonic() + GIVE_UP_S
        while store.info().trials < KILLED_AFTER and child.poll() is None:
            assert time.monotonic() < give_up_s
            time.sleep(0.01)
        child.kill()
        _, said = child.communicate()
    assert child.returncode == -signal.SIGKILL, said
    return database


@pytest.mark.slow
def test_a_killed_program_goes_on_trial_for_trial(killed: Path) -> None:
    with Store.open(str(killed)) as store:
        before = store.campaign_proposals(1)
        stored = store.campaign(1)
        assert len(before) >= KILLED_AFTER
        assert stored.settings.source == "program.mlir"
        assert len(stored.settings.floors_s) == 3
        assert all(run.settings.problem.cache == WEIGHTS_COLD for run in stored.runs)
        assert [run.settings.problem.operation for run in stored.runs] == [
            "contraction",
            "rows",
            "contraction",
        ]
        with brief_remeasurement():
            tuned = resume_campaign(1, real_candidates(), store, Interruption())
        after = store.campaign_proposals(1)
        assert (tuned.campaign.status, len(after)) == ("done", TRIALS)
        assert tuned.campaign.settings == stored.settings
        assert [text_of(each) for each in after[: len(before)]] == [text_of(each) for each in before]
        for one, other in zip(before, after, strict=False):
            if one.proposal.trial is not None:
                assert one.proposal.trial.record == other.proposal.trial.record  # type: ignore[union-attr]
        assert tuned.has_worked, [trial.record.outcome for trial in store.trials(TrialQuery(status="failed"))]


def text_of(each: CampaignProposal) -> tuple[int, int, str, str]:
    return each.number, each.run, each.column.text, each.proposal.candidate.text


def hanging() -> Backends:
    """Returns the real thing, but that the code of contractions hangs."""

    def children(target: TargetName, problem: Problem, threads: int) -> RunnerChildren:
        assert cpu.KIND.outcomes.children is not None
        made = cpu.KIND.outcomes.children(target, problem, threads)
        compiler = Factory("tests.tuning.hanging_groups:HangingCompiler")
        limits = Limits(compile_timeout_s=120.0, evaluation_timeout_s=10.0)
        return dataclasses.replace(made, compiler=compiler, limits=limits)

    roofline = fakes.FAKE.outcomes.roofline
    kind = fakes.changed_kind(cpu.KIND, runners=child_runners(children), roofline=roofline)
    real = real_candidates()
    return dataclasses.replace(real, kinds={**real.kinds, "cpu": kind})


@pytest.mark.slow
def test_a_campaign_whose_candidates_hang_does_not_end_the_others(tmp_path: Path) -> None:
    backends = hanging()
    problems = tuple(NamedProblem(each, f"g{place}") for place, each in enumerate(fusion_problems()[:2]))
    settings, members = campaign_settings(
        problems,
        lambda problem: RunRequest(problem, "cpu", trials=2, workers=1, warm_start=False),
        backends,
    )
    with Store.open(str(tmp_path / "results.db")) as store, brief_remeasurement():
        tuned = begin_campaign(settings, members, backends, store, Interruption())
        contraction, rows = tuned.runs
        assert tuned.campaign.status == "done"
        assert contraction.best is None
        assert rows.best is not None
        assert isinstance(rows.best.record.outcome, Measurement)
        failed = store.trials(TrialQuery(run=contraction.run.id))
        assert len(failed) == 1
        for trial in failed:
            assert isinstance(trial.record.outcome, Failure)
            assert trial.record.outcome.stage is Stage.RUN
            assert trial.record.outcome.reason.startswith("timed out after")
