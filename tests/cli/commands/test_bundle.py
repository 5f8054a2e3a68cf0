"""Compile here, measure there: there and back, on a GPU made of a stand-in and the PTX simulator."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.conftest import Done, Tuner
from tests.library.bundle import simulated_gpu
from tuner.core.errors import TunerError
from tuner.core.interfaces import Effort
from tuner.core.problem import Problem
from tuner.core.records import Measurement
from tuner.core.runs import Baseline
from tuner.library.bundle import command, session
from tuner.library.bundle.archive import read_results
from tuner.runtime.cuda import probe
from tuner.targets.registry import real_backends

pytestmark = [pytest.mark.mlir, pytest.mark.slow]

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
PRINTED = (TUNE, EXPORT, EXPORT_SOME, MEASURE, MEASURE_BRIEFLY, IMPORT, HISTORY)


def baseline(problem: Problem, effort: Effort, seed: int) -> Baseline:
    return Baseline(BASELINE, 0, Measurement((1e-6,), 1, 1e-6, (1e-6, 1e-6)))


def no_baseline(problem: Problem, effort: Effort, seed: int) -> Baseline:
    raise TunerError("none here")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Gives a database with the verified trials of the pages' first command."""
    tuner = Tuner(tmp_path_factory.mktemp("compiled") / "results.db", real_backends())
    done = tuner(*TUNE)
    assert done.code == 0, done.err
    return tuner.database


@dataclass(frozen=True)
class Measured:
    folder: Path
    exported: Done
    done: Done

    @property
    def bundle(self) -> Path:
        return self.folder / "pending.bundle"

    @property
    def results(self) -> Path:
        return self.folder / "pending.bundle.results.jsonl"


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
        assert tuner(*EXPORT_SOME).code == 0
        exported = tuner(*EXPORT, "--json")
        done = tuner(*MEASURE)
        again = tuner(*MEASURE_BRIEFLY)
    assert (again.code, "0 measured, 0 failed, 0 left" in again.out) == (0, True)
    return Measured(folder, exported, done)


@pytest.fixture
def tuner(compiled: Path, tmp_path: Path) -> Tuner:
    """Runs commands on a copy of the database."""
    shutil.copy(compiled, tmp_path / "results.db")
    return Tuner(tmp_path / "results.db", real_backends())


def test_export_and_measure_report_kernels_that_the_driver_compiles_from_ptx(measured: Measured) -> None:
    assert measured.exported.code == 0, measured.exported.err
    document = measured.exported.json
    assert (document["candidates"], document["chips"]) == (CANDIDATES, ["sm_90"])
    assert list(document["problems"]) == ["matmul 64x64x64 f16 nn none"]
    assert document["bytes"] == measured.bundle.stat().st_size
    assert measured.done.code == 0, measured.done.err
    assert f"{CANDIDATES} measured, 0 failed, 0 left for want of time" in measured.done.out
    assert f"  {BASELINE}: 1 us" in measured.done.err
    assert "matmul_gpu_mma_sync(" in measured.done.out
    assert measured.done.out.endswith("tuner bundle import pending.bundle.results.jsonl\n")
    assert {trial.code for trial in read_results(measured.results).trials} == {"ptx"}


def test_commands_see_the_results(measured: Measured, tuner: Tuner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(measured.folder)
    assert tuner(*IMPORT, "--json").json == {"runs": 1, "trials": CANDIDATES, "known": 0}
    table = tuner(*HISTORY).out
    assert "in every row: run 2, problem matmul 64x64x64 f16, target cuda:sm_90, threads 1" in table
    rows = tuner(*HISTORY, "--machine", MACHINE, "--json").json
    assert [row["status"] for row in rows] == ["measured"] * CANDIDATES
    (best,) = tuner("history", "--best", "--json").json
    assert best["target"] == "cuda:sm_90"
    text = ("export", "matmul", SHAPE, "--dtype", "f16", "--target", "cuda:sm_90", "--machine", MACHINE)
    script = tuner(*text)
    assert script.code == 0, script.err
    assert MACHINE in script.out
    assert "@__transform_main" in script.out
    shown = tuner("show", str(best["trial"]))
    assert MACHINE in shown.out
    assert "verified  4096 elements, largest error" in shown.out
    run = tuner("show", "run:2")
    assert "remote    measuring" in run.out
    assert BASELINE in run.out
    assert tuner("show", "run:2", "--json").json["elsewhere"]["driver"] == "13.0"


def test_a_second_import_adds_nothing_and_no_import_is_resumed(measured: Measured, tuner: Tuner) -> None:
    tuner("bundle", "import", str(measured.results))
    again = tuner("bundle", "import", str(measured.results))
    assert again.out == "added 0 trials in 0 new runs; 4 were here already\n"
    nothing = tuner("bundle", "export", "-o", str(tuner.database.with_name("none")))
    assert nothing.code == 1
    assert nothing.err.startswith("error: no compiled trial waits for a time\nhint: ")
    refused = tuner.refused("tune", "--resume", "2")
    assert refused == "error: run 2: was measured from a bundle and cannot be continued\n"


def test_results_are_refused_where_nobody_knows_their_trials(measured: Measured, tmp_path: Path) -> None:
    other = Tuner(tmp_path / "other.db", real_backends())
    assert "found a trial that is not in this database, nor its script" in other.refused(
        "bundle", "import", str(measured.results)
    )
    assert other("db", "info", "--json").json["runs"] == 0


def test_with_compiler_and_gpu_here_no_file_is_needed(tuner: Tuner, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = simulated_gpu.here(no_baseline)
    monkeypatch.setattr(command, "gpu_here", lambda: gpu)
    monkeypatch.setattr(session, "FINAL_EFFORT", BRIEF)
    done = tuner("measure", "--pending")
    assert done.code == 0, done.err
    assert f"{CANDIDATES} measured, 0 failed" in done.out
    assert "bundle import" not in done.out
    assert "no baseline: none here" in done.err
    assert len(tuner("history", "--target", "cuda", "--json").json) == CANDIDATES


def test_what_is_no_time_and_no_results_file_is_refused(measured: Measured, tuner: Tuner) -> None:
    assert tuner.refused("measure", "--pending", "--results", "x") == (
        "error: --results needs --bundle FILE: without a bundle the results go to the database\n"
    )
    assert "is not text; it must be a file of tuner-results" in tuner.refused(
        "bundle", "import", str(measured.bundle)
    )
    refused = tuner.refused("bundle", "export", "-o", "/proc/none/x")
    assert refused.startswith("error: /proc/none/x: cannot be written")
    for seconds in ("0", "nan", "inf"):  # before a GPU is looked for
        done = tuner("measure", "--pending", "--seconds", seconds)
        assert (done.code, done.err) == (2, f"error: seconds: found {seconds}, allowed more than 0\n")


def test_without_a_driver_nothing_is_measured(
    tuner: Tuner, measured: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "LIBRARY", "libcuda-none.so")
    done = tuner("measure", "--bundle", str(measured.bundle))
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: no CUDA driver: libcuda-none.so cannot be loaded")
