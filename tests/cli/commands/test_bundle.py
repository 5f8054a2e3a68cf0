"""Compile here, measure there: there and back, on a GPU made of a stand-in and the PTX simulator."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.conftest import Done, Tuner, require
from tests.elsewhere.bundle import simulated_gpu
from tests.tuning import fakes
from tuner.core.interfaces import Effort
from tuner.core.problem import Problem
from tuner.core.records import Measurement
from tuner.core.runs import Baseline
from tuner.elsewhere.bundle import command, session
from tuner.elsewhere.bundle.results_file import read_results
from tuner.targets.registry import real_backends

pytestmark = pytest.mark.mlir

SHAPE = "64x64x64"  # of the pages' examples, which run here as printed
CANDIDATES = 4
MACHINE = "stub GPU 0"
BASELINE = "cuBLAS 0.0"
BRIEF = Effort(budget_s=0.0, min_samples=1, max_samples=1)
# As the pages and the help have them: tests/docs/test_examples.py compares.
TUNE = ("tune", "matmul", SHAPE, "--dtype", "f16", "--target", "simulator", "--trials", str(CANDIDATES))
EXPORT = ("bundle", "export", "matmul", SHAPE, "-o", "pending.bundle")
EXPORT_SOME = ("bundle", "export", "matmul", SHAPE, "--limit", "50", "-o", "pending.bundle")
MEASURE = ("measure", "--bundle", "pending.bundle")
MEASURE_BRIEFLY = (*MEASURE, "--seconds", "300")
IMPORT = ("bundle", "import", "pending.bundle.results.jsonl")
HISTORY = ("history", "--target", "cuda", "--shape", SHAPE, "--sort", "median", "--limit", "10")
PRINTED = (TUNE, EXPORT, EXPORT_SOME, MEASURE_BRIEFLY, IMPORT, HISTORY)


def baseline(problem: Problem, effort: Effort, seed: int) -> Baseline:
    return Baseline(BASELINE, 0, Measurement((1e-6,), 1, 1e-6, (1e-6, 1e-6)))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tuner = Tuner(tmp_path_factory.mktemp("compiled") / "results.db", real_backends())
    tuner.done(*TUNE)
    return tuner.database


@dataclass(frozen=True)
class Measured:
    bundle: Path
    results: Path
    exported: Done
    done: Done


@pytest.fixture(scope="module")
def measured(compiled: Path, tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """Gives what the examples of export and measure do; once all is measured, nothing is left."""
    folder = tmp_path_factory.mktemp("measured")
    tuner = Tuner(compiled, real_backends())
    gpu = simulated_gpu.here(baseline)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(command, "gpu_here", lambda: gpu)
        patch.setattr(session, "FINAL_EFFORT", BRIEF)
        exported, done = tuner.done(*EXPORT, "--json"), tuner.done(*MEASURE)
        assert "0 measured, 0 failed, 0 left" in tuner.done(*MEASURE_BRIEFLY).out
    return Measured(folder / "pending.bundle", folder / "pending.bundle.results.jsonl", exported, done)


@pytest.fixture
def tuner(compiled: Path, tmp_path: Path) -> Tuner:
    shutil.copy(compiled, tmp_path / "results.db")
    return Tuner(tmp_path / "results.db", real_backends())


def test_no_more_candidates_than_asked_for_are_exported(
    tuner: Tuner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert tuner(*EXPORT_SOME, "--json").json["candidates"] == CANDIDATES
    assert tuner("bundle export --limit 1 -o one.bundle --json").json["candidates"] == 1


def test_export_and_measure_report_kernels_that_the_driver_compiles_from_ptx(measured: Measured) -> None:
    document = measured.exported.json
    assert (document["candidates"], document["chips"]) == (CANDIDATES, ["sm_90"])
    assert list(document["problems"]) == ["matmul 64x64x64 f16 nn none"]
    assert document["bytes"] == measured.bundle.stat().st_size
    assert f"  {BASELINE}: 1 us" in measured.done.err
    left = f"{CANDIDATES} measured, 0 failed, 0 left, as the time was over"
    require(measured.done.out, left, "matmul_gpu_mma_sync(")
    assert measured.done.out.endswith("tuner bundle import pending.bundle.results.jsonl\n")
    assert {trial.code for trial in read_results(measured.results).trials} == {"text"}


def test_commands_see_the_results(measured: Measured, tuner: Tuner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(measured.bundle.parent)
    assert tuner(*IMPORT, "--json").json == {"runs": 1, "trials": CANDIDATES, "known": 0}
    table = tuner(*HISTORY).out
    assert "in every row: run 2, problem matmul 64x64x64 f16, target cuda:sm_90, threads 1" in table
    rows = tuner(*HISTORY, "--machine", MACHINE, "--json").json
    assert [row["status"] for row in rows] == ["measured"] * CANDIDATES
    (best,) = tuner("history --best --json").json
    assert best["target"] == "cuda:sm_90"
    text = ("export", "matmul", SHAPE, "--dtype", "f16", "--target", "cuda:sm_90", "--machine", MACHINE)
    require(tuner.done(*text).out, MACHINE, "@__transform_main")
    require(tuner("show", str(best["trial"])).out, MACHINE, "verified  4096 elements, largest error")
    require(tuner("show run:2").out, "remote    measuring", BASELINE)
    assert tuner("show run:2 --json").json["elsewhere"]["driver"] == "13.0"


def test_a_second_import_adds_nothing_and_no_import_is_resumed_nor_taken_by_those_who_know_no_trial(
    measured: Measured, tuner: Tuner, tmp_path: Path
) -> None:
    tuner("bundle import", str(measured.results))
    again = tuner("bundle import", str(measured.results))
    assert again.out == "added 0 trials in 0 new runs; 4 were here already\n"
    nothing = tuner.failed("bundle export -o", str(tuner.database.with_name("none")))
    assert nothing.err.startswith("error: no compiled trial waits for a time\nhint: ")
    refused = tuner.refused("tune --resume 2")
    assert refused == "error: run 2: was measured from a bundle and cannot be continued\n"
    other = Tuner(tmp_path / "other.db", real_backends())
    refused = other.refused("bundle import", str(measured.results))
    assert "found a trial that is not in this database, nor its script" in refused
    assert other("db info --json").json["runs"] == 0


@pytest.mark.slow
def test_with_compiler_and_gpu_here_no_file_is_needed(tuner: Tuner, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = simulated_gpu.here(fakes.no_baseline)
    monkeypatch.setattr(command, "gpu_here", lambda: gpu)
    monkeypatch.setattr(session, "FINAL_EFFORT", BRIEF)
    done = tuner.done("measure --pending")
    require(done.out, f"{CANDIDATES} measured, 0 failed", without="bundle import")
    assert "no baseline: openblas: exited with status 3" in done.err
    assert len(tuner("history --target cuda --json").json) == CANDIDATES


def test_what_is_no_results_file_is_refused(measured: Measured, tuner: Tuner) -> None:
    why = "--results needs --bundle FILE: without a bundle the results go to the database"
    assert tuner.refused("measure --pending --results x") == f"error: {why}\n"
    refused = tuner.refused("bundle import", str(measured.bundle))
    assert "is not text; it must be a file of tuner-results" in refused
    refused = tuner.refused("bundle export -o /proc/none/x")
    assert refused.startswith("error: /proc/none/x: cannot be written")
