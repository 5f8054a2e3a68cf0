"""A script whose code is wrong where the search does not look; the final and checks find it."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tuning import fakes
from tests.tuning.fakes import present, trials_of
from tuner.analysis.slowdown import SlowdownLimits
from tuner.core.candidate import Candidate, TargetName
from tuner.core.errors import Failure, Stage
from tuner.core.interfaces import AbstractRunner, Script
from tuner.core.matmul import Matmul
from tuner.db.store import Store
from tuner.results.exported_trial import exported
from tuner.results.regression.script_check import CheckFinding, checked
from tuner.runtime.cpu.host import describe_machine
from tuner.runtime.workers.limits import Limits
from tuner.runtime.workers.protocol import Factory
from tuner.runtime.workers.runner import RunnerOrder, RunnerProcesses, TrialRunner
from tuner.runtime.workers.services import compile_spec, evaluation_spec
from tuner.space.scripts.header import parse_provenance, without_header
from tuner.targets.backends import Backends
from tuner.targets.target import RunnerSettings
from tuner.tuning.events import Interruption
from tuner.tuning.run import begin
from tuner.tuning.tuned_run import TunedRun

pytestmark = pytest.mark.mlir

PROBLEM = Matmul(37, 53, 41)
# sets FTZ and DAZ of MXCSR while it works, and restores them: right on all numbers that are not subnormal
SUBNORMALS_AS_ZEROS = Path(__file__).with_name("subnormals_as_zeros.mlir").read_text()
LOOPS = "\n".join(line for line in SUBNORMALS_AS_ZEROS.splitlines() if "tuner.other_body" not in line)
SCRIPTS = {"subnormals_as_zeros": SUBNORMALS_AS_ZEROS, "loops": LOOPS}


def bind(candidate: Candidate) -> Script:
    return Script.of(SCRIPTS[str(dict(candidate.choices)["body"])])


def runner(order: RunnerOrder, how: RunnerSettings) -> AbstractRunner:
    compiler = compile_spec(Factory("tests.targets.cpu.other_body:compiler"))
    evaluator = evaluation_spec(Factory("tuner.targets.cpu.evaluator:CpuEvaluator", (1,)))
    return TrialRunner.in_children(order, RunnerProcesses(compiler, evaluator, 1, Limits()), how.seed)


def backends(*bodies: str) -> Backends:
    machine = describe_machine()
    return fakes.backends(
        plan=fakes.plan({"body": bodies}),
        bind=lambda *_: bind,
        runner=runner,
        machine=lambda _target: machine,
    )


def tuned(store: Store, *bodies: str) -> TunedRun:
    settings = fakes.settings(trials=len(bodies), problem=PROBLEM)
    return begin(settings, backends(*bodies), store, Interruption())


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(str(tmp_path / "tuner.db")) as opened:
        yield opened


@pytest.mark.slow  # the run is in test_refuted_trials.py, the kernel in test_more_dishonest_kernels.py
def test_a_script_that_reads_subnormal_numbers_as_zeros_is_a_failed_trial_and_the_run_goes_on(
    store: Store,
) -> None:
    result = tuned(store, "subnormals_as_zeros", "loops")
    by_body = {dict(each.record.candidate.choices)["body"]: each for each in trials_of(store)}
    failure = by_body["subnormals_as_zeros"].record.outcome
    assert isinstance(failure, Failure)
    assert failure.stage is Stage.VERIFY
    assert failure.reason.startswith("in the final re-measurement: ")
    assert "elements looked at are wrong" in failure.reason
    best = present(result.best)
    assert best.id == by_body["loops"].id
    assert best.final is not None


@pytest.mark.slow
def test_alone_it_leaves_no_best(store: Store) -> None:
    assert tuned(store, "subnormals_as_zeros").best is None


@pytest.mark.slow
@pytest.mark.parametrize("has_time", [True, False])
def test_a_check_of_such_a_script_fails(store: Store, has_time: bool) -> None:
    result = tuned(store, "loops")
    parts = backends("loops")
    best = present(result.best)
    script = exported(parts, store, best, "script", None).decode()
    document = exported(parts, store, best, "provenance", None).decode()
    provenance = parse_provenance(document, script, "best.provenance.json")
    if not has_time:
        provenance = dataclasses.replace(provenance, median_s=None, interval_s=None)
    assert provenance.target == TargetName("fake")
    good = checked(parts, provenance, without_header(script), SlowdownLimits.up_to())
    assert good.finding is not CheckFinding.FAILED
    found = checked(parts, provenance, SUBNORMALS_AS_ZEROS, SlowdownLimits.up_to())
    assert found.finding is CheckFinding.FAILED
    assert found.reason.startswith("fails at stage verify: ")
