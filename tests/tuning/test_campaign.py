"""A campaign that is killed anywhere, and resumed, ends with the trials of one that was not."""

import contextlib
import dataclasses
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast, final

import pytest

from tests.cli.conftest import Tuner
from tests.cli.real import brief_remeasurement, real_candidates
from tests.fakes import FakeTarget
from tests.fusion_problems import fusion_problems, program_text
from tests.support.run_differences import differences
from tests.texts import text_beside
from tests.tuning import fakes
from tests.tuning.test_fake_campaign import limits, members
from tests.tuning.test_resume import KilledError, Life, MortalStore
from tuner.core.candidate import TargetName
from tuner.core.compiled_code import KernelCode
from tuner.core.errors import Failure, Stage
from tuner.core.fusions import CONTRACTION
from tuner.core.interfaces import AbstractCompiler, Artifact, Script
from tuner.core.machine import Machine
from tuner.core.packings import threads_in
from tuner.core.problem import WEIGHTS_COLD, NamedProblem, Problem
from tuner.core.problem_classes import TextProblem
from tuner.core.queries import TrialQuery
from tuner.core.records import Measurement
from tuner.core.requests import CampaignProposal, RunRequest
from tuner.core.runs import RunSettings
from tuner.core.trials import StoredTrial
from tuner.db.store import Store
from tuner.mlir.fusions.function import fusion_arguments
from tuner.models.compile import compile_program
from tuner.models.fusion_tuning import tune_text
from tuner.runtime.workers.limits import Limits
from tuner.runtime.workers.protocol import Factory
from tuner.targets.backends import Backends
from tuner.targets.children import child_runners
from tuner.targets.cpu.compiler import CpuCompiler
from tuner.targets.registry import TARGETS
from tuner.targets.target import Plan, RunnerChildren
from tuner.tuning.campaign import begin_campaign, campaign_settings, resume_campaign
from tuner.tuning.events import Interruption


@final
class HangingCompiler(AbstractCompiler):
    def __init__(self) -> None:
        self._real = CpuCompiler()

    def compile(self, problem: Problem, script: Script) -> Artifact:
        artifact = self._real.compile(problem, script)
        if not isinstance(problem, TextProblem) or problem.operation != CONTRACTION:
            return artifact
        count = len(fusion_arguments(problem.text))
        arguments = ", ".join(f"%p{number}: !llvm.ptr" for number in range(count))
        code = text_beside(__file__, "forever").format(arguments=arguments)
        packings = artifact.code.text.partition("\n")[0]
        return replace(artifact, code=KernelCode.of_host(f"{packings}\n{code}"))


TRIALS = 36  # beyond the pool: the sampler proposes, too
MOMENTS = ("compile", "load", "verify", "measure", "measure_together")
WRITES = (
    *("begin_campaign", "propose", "record", "set_campaign_seconds", "set_campaign_status"),
    *("add_round", "set_roofline", "extend_run"),
)
Proposed = list[tuple[int, int, str]]  # (place of the run, number in the run, unprojected configuration)


def plan(settings: RunSettings, machine: Machine) -> Plan:
    whole = fakes.plan({"x": tuple(range(20)), "comment": ("a", "b")})(settings, machine)
    return dataclasses.replace(whole, first=(0, 7, 21), model=fakes.Preferring((30, 12, 35, 9, 3)))


def backends() -> Backends:
    return fakes.backends(plan=plan)


def lived(store: Store, life: Life, session: Callable[..., Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name in MOMENTS:
            patch.setattr(FakeTarget, name, life.around(getattr(FakeTarget, name)))
        with contextlib.suppress(KilledError):
            session(backends(), cast(Store, MortalStore(store, life, WRITES)), life.interruption)


def begun(*parts: Any) -> None:
    begin_campaign(limits(TRIALS), members(), *parts)


def resumed(*parts: Any) -> None:
    resume_campaign(1, *parts)


def trials(store: Store, campaign: int = 1) -> list[tuple[StoredTrial, ...]]:
    return [fakes.trials_of(store, run.id) for run in store.campaign(campaign).runs]


def proposed(store: Store, campaign: int = 1) -> Proposed:
    places = {run.id: place for place, run in enumerate(store.campaign(campaign).runs)}
    found = store.campaign_proposals(campaign)
    return [(places[each.run], each.proposal.number, each.column.text) for each in found]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Proposed, list[Any], int]:
    life = Life()
    with Store.open(str(tmp_path_factory.mktemp("campaign") / "whole.db")) as store:
        lived(store, life, begun)
        assert store.campaign(1).status == "done"
        return proposed(store), trials(store), life.moments


@pytest.mark.slow
@pytest.mark.parametrize("moment", range(10))
def test_a_campaign_killed_anywhere_resumes_to_the_same_trials(
    uninterrupted: tuple[Proposed, list[Any], int], tmp_path: Path, moment: int
) -> None:
    order, expected, moments = uninterrupted
    ends_at = 3 + round(moments * (moment + 0.5) / 10)
    with Store.open(str(tmp_path / "killed.db")) as store:
        lived(store, Life(ends_at, is_polite=moment % 3 == 2), begun)
        assert store.campaign(1).status != "done"
        lived(store, Life(moments // 3), resumed)  # and once more
        resumed(backends(), store, Life().interruption)
        assert (store.campaign(1).status, proposed(store)) == ("done", order)
        for one, other in zip(expected, trials(store), strict=True):
            assert [each.text for each in differences(one, other)] == []


@pytest.mark.slow
def test_the_whole_campaign_used_pool_and_sampler(uninterrupted: tuple[Proposed, list[Any], int]) -> None:
    order, found, _ = uninterrupted
    assert len(order) == sum(len(each) for each in found) == TRIALS
    assert len({column for _, _, column in order}) > len({column for _, _, column in order[:12]})
    assert max(len(each) for each in found) > 8  # the pool's size


def test_a_campaign_killed_before_it_is_stored_leaves_nothing(tmp_path: Path) -> None:
    with Store.open(str(tmp_path / "tuner.db")) as store:
        lived(store, Life(0), begun)
        assert (store.campaigns(), store.runs()) == ((), ())


# Campaigns on this machine: children shared by all problems, killed and resumed; candidates that hang.

KILLED_AFTER = 3  # proposals
GIVE_UP_S = 120.0  # longer than a start on a busy machine takes
THREADS = 2
SHAPES = "- {shape: 16x32x16, count: 3}\n- {shape: 1x48x32, layout: nt}\n- {shape: 2x8x16x8, dtype: f64}\n"


def killed_after(proposals: int, database: Path, *options: str) -> None:
    """Runs ``tuner tune`` with the options, and kills it by SIGKILL once it has stored so many proposals."""
    command = [sys.executable, "-m", "tuner", "tune", *options, "--db", str(database), "--json"]
    nothing, said_too = subprocess.DEVNULL, subprocess.PIPE
    with (
        Store.open(str(database)) as store,
        subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=said_too, text=True) as child,
    ):
        give_up_s = time.monotonic() + GIVE_UP_S
        while store.info().trials < proposals and child.poll() is None:
            assert time.monotonic() < give_up_s
            time.sleep(0.01)
        child.kill()
        _, said = child.communicate()
    assert child.returncode == -signal.SIGKILL, said


def text_of(each: CampaignProposal) -> tuple[int, int, str, str]:
    return each.number, each.run, each.column.text, each.proposal.candidate.text


@pytest.mark.mlir
@pytest.mark.slow
@pytest.mark.parametrize("source", ["program.mlir", "shapes.yaml"])
def test_a_killed_campaign_goes_on_trial_for_trial(tmp_path: Path, source: str) -> None:
    """By SIGKILL, after some proposals."""
    file, database, total = tmp_path / source, tmp_path / "results.db", 7
    is_program = source == "program.mlir"
    file.write_text(program_text() if is_program else SHAPES)
    given = (str(file),) if is_program else ("--shapes", str(file))
    killed_after(KILLED_AFTER, database, *given, "--trials", str(total), "--workers", "2", "--target", "cpu")
    with Store.open(str(database)) as store:
        before, stored = store.campaign_proposals(1), store.campaign(1)
        assert len(before) >= KILLED_AFTER
        assert stored.status == "interrupted"  # as the reader finds: the kill told nobody
        if is_program:
            assert (stored.settings.source, len(stored.settings.floors_s)) == ("program.mlir", 3)
            assert all(run.settings.problem.cache == WEIGHTS_COLD for run in stored.runs)
            operations = [run.settings.problem.operation for run in stored.runs]
            assert sorted(operations) == ["contraction", "contraction", "rows"]  # the heaviest first
        with brief_remeasurement():
            tuned = resume_campaign(1, real_candidates(), store, Interruption())
        after = store.campaign_proposals(1)
        assert (tuned.campaign.status, len(after)) == ("done", total)
        assert tuned.campaign.settings == stored.settings
        assert [text_of(each) for each in after[: len(before)]] == [text_of(each) for each in before]
        for one, other in zip(before, after, strict=False):
            if one.proposal.trial is not None:
                assert one.proposal.trial.record == other.proposal.trial.record  # type: ignore[union-attr]
        assert tuned.has_worked, [trial.record.outcome for trial in store.trials(TrialQuery(status="failed"))]
        assert tuned.total_s is not None
        assert [run.counts.proposed >= 1 for run in tuned.runs] == [True] * 3


@pytest.mark.slow
@pytest.mark.mlir
def test_kernels_of_a_campaign_are_divided_among_threads(tmp_path: Path) -> None:
    usable = real_candidates().processors().usable
    if usable < THREADS:
        pytest.skip(f"{usable} processor, {THREADS} threads")
    shapes = tmp_path / "shapes.yaml"
    shapes.write_text("- {shape: 32x64x16}\n- {shape: 64x32x32, layout: nt}\n")
    tuner = Tuner(tmp_path / "results.db", real_candidates())
    options = ("--trials", "4", "--threads", str(THREADS), "--workers", "1", "--target", "cpu")
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


@pytest.mark.mlir
@pytest.mark.slow
def test_fusions_that_a_program_divides_are_tuned_on_its_threads_and_others_on_one(tmp_path: Path) -> None:
    usable = real_candidates().processors().usable
    if usable < THREADS:
        pytest.skip(f"{usable} processor, {THREADS} threads")
    text, database = program_text(64, 256, 256), str(tmp_path / "results.db")
    with brief_remeasurement():
        tuned = tune_text(text, trials=6, workers=1, database=database, threads=THREADS)
    assert tuned.campaign is not None
    with Store.open(database) as store:
        runs = [each.run for each in tuned.campaign.runs]
        assert sorted(run.settings.threads for run in runs) == [1, THREADS, THREADS]
        for run in runs:
            trials = [each for each in store.trials(TrialQuery(run=run.id)) if each.best_s is not None]
            assert trials, [each.record.outcome for each in store.trials(TrialQuery(run=run.id))]
            assert {threads_in(each.script_text) for each in trials} == {run.settings.threads}
    for threads in (1, THREADS):
        program: Any = compile_program(text, target="cpu", db=database, threads=threads)
        fusions = program.code.fusions
        assert [each.is_divided for each in fusions] == [threads > 1, False, threads > 1]
        assert {each.origin for each in fusions} <= {"tuned", "first"}  # as it was timed: no other one's


def hanging() -> Backends:
    def children(target: TargetName, problem: Problem, threads: int) -> RunnerChildren:
        made = TARGETS["cpu"].children(target, problem, threads)
        compiler = Factory("tests.tuning.test_campaign:HangingCompiler")
        limits = Limits(compile_timeout_s=120.0, evaluation_timeout_s=10.0)
        return dataclasses.replace(made, compiler=compiler, limits=limits)

    roofline = fakes.FAKE.roofline
    kind = fakes.changed(TARGETS["cpu"], runners=partial(child_runners, children), roofline=roofline)
    real = real_candidates()
    return fakes.changed(real, targets={**real.targets, "cpu": kind})


@pytest.mark.mlir
@pytest.mark.slow
def test_a_campaign_whose_candidates_hang_does_not_end_the_others(tmp_path: Path) -> None:
    backends = hanging()
    problems = tuple(NamedProblem(each, f"g{place}") for place, each in enumerate(fusion_problems()[:2]))
    settings, members = campaign_settings(
        problems, lambda problem: RunRequest(problem, "cpu", trials=2, workers=1, warm_start=False), backends
    )
    with Store.open(str(tmp_path / "results.db")) as store, brief_remeasurement():
        tuned = begin_campaign(settings, members, backends, store, Interruption())
        contraction, rows = tuned.runs
        assert (tuned.campaign.status, contraction.best) == ("done", None)
        assert rows.best is not None
        assert isinstance(rows.best.record.outcome, Measurement)
        (failed,) = store.trials(TrialQuery(run=contraction.run.id))
        assert isinstance(failed.record.outcome, Failure)
        assert failed.record.outcome.stage is Stage.RUN
        assert failed.record.outcome.reason.startswith("timed out after")
