import dataclasses
from pathlib import Path

import pytest

from benchmarks.gpu_check.checks import passed
from benchmarks.gpu_check.device_under_test import CUDA, SIMULATOR, STUB, Bed
from benchmarks.gpu_check.gpu_point import GpuPoint, feasible_set
from benchmarks.gpu_check.tuning import LEAST_SEARCH_S, PROBLEMS, checks, joined, recompiled, share_s
from tests.tuning.fakes import backends, settings
from tuner.core.problem import Matmul
from tuner.db.store import Store
from tuner.tuning.events import Interruption
from tuner.tuning.run import begin


def test_each_run_gets_its_part_of_what_is_left() -> None:
    assert share_s(110.0, 10.0, 5) == pytest.approx(10.0)
    assert share_s(110.0, 90.0, 1) == pytest.approx(10.0)
    assert share_s(110.0, 200.0, 2) == LEAST_SEARCH_S


def test_on_a_gpu_the_five_problems_are_tuned() -> None:
    names = [check.name for check in checks(Bed(CUDA, "sm_90", limit_s=100.0))]
    assert names == [problem.key for problem in PROBLEMS]
    assert {problem.dtype for problem in PROBLEMS[:4]} == {"f16", "bf16", "tf32", "f32"}
    assert PROBLEMS[4].sizes == (5376, 2048, 5376)


def test_the_stand_in_for_the_driver_is_not_tuned_for() -> None:
    (check,) = checks(Bed(STUB, "sm_90"))
    assert check.ask().status == "skipped"


def test_the_best_of_a_run_is_reported_with_its_times(tmp_path: Path) -> None:
    with Store.open(str(tmp_path / "check.db")) as store:
        tuned = begin(settings(trials=4), backends(), store, Interruption())
    outcome = joined(tuned, passed("1 us", median_s=1e-6))
    assert outcome.words.startswith("1 us; 4 tried, 4 right, 0 failed; ")
    facts = outcome.facts
    assert (facts["strategy"], facts["median_s"], facts["measured"]) == ("fake", 1e-6, 4)
    assert set(facts["knobs"]) == {"x", "comment"}
    assert facts["baseline_of_run_s"] is not None
    without = dataclasses.replace(tuned, run=dataclasses.replace(tuned.run, baseline=None))
    assert joined(without, passed()).facts["baseline_of_run_s"] is None


@pytest.mark.mlir
def test_the_best_script_is_compiled_again() -> None:
    problem = Matmul(8, 33, 4)
    point = GpuPoint(problem, feasible_set(problem, "matmul_gpu_naive").candidate(0))
    assert recompiled("sm_90", problem, point.script()).launches == point.program().launches


@pytest.mark.slow
@pytest.mark.mlir
def test_on_the_simulator_candidates_are_verified() -> None:
    (check,) = checks(Bed(SIMULATOR, "sm_90"))
    outcome = check.ask()
    assert (outcome.status, outcome.facts["verified"]) == ("passed", 2)
