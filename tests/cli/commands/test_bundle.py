"""Compile here, measure there: there and back, on a GPU made of a stand-in and the PTX simulator."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.bundle.measure import simulated_gpu
from tests.cli.conftest import Done, Tuner
from tuner.bundle.measure import command, session
from tuner.bundle.results import read_results
from tuner.core.errors import TunerError
from tuner.core.problem import Problem
from tuner.core.record import Measurement
from tuner.core.runs import Baseline
from tuner.core.target import Effort
from tuner.tuning.parts.real import real_composition

pytestmark = pytest.mark.mlir

SHAPE = "16x8x8"
MACHINE = "stub GPU 0"
BRIEF = Effort(budget_s=0.0, min_samples=2, max_samples=2)


def baseline(problem: Problem, effort: Effort, seed: int) -> Baseline:
    return Baseline("cuBLAS 0.0", 0, Measurement((1e-6,), 1, 1e-6, (1e-6, 1e-6)))


def no_baseline(problem: Problem, effort: Effort, seed: int) -> Baseline:
    raise TunerError("none here")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Gives a database with two verified trials."""
    tuner = Tuner(tmp_path_factory.mktemp("compiled") / "results.db", real_composition())
    words = ("--target", "simulator", "--strategy", "matmul_gpu_naive", "--trials", "2", "--workers", "1")
    done = tuner("tune", "matmul", SHAPE, *words)
    assert done.code == 0, done.err
    return tuner.database


@dataclass(frozen=True)
class Measured:
    """A bundle that was measured, and what the commands said."""

    bundle: Path
    results: Path
    exported: Done
    done: Done


@pytest.fixture(scope="module")
def measured(compiled: Path, tmp_path_factory: pytest.TempPathFactory) -> Measured:
    folder = tmp_path_factory.mktemp("measured")
    bundle = folder / "pending.bundle"
    tuner = Tuner(compiled, real_composition())
    exported = tuner("bundle", "export", "matmul", SHAPE, "-o", str(bundle), "--json")
    gpu = simulated_gpu.here(baseline)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "gpu_here", lambda: gpu)
        patch.setattr(session, "FINAL_EFFORT", BRIEF)
        done = tuner("measure", "--pending", "--bundle", str(bundle), "--json")
    return Measured(bundle, folder / "pending.bundle.results.jsonl", exported, done)


@pytest.fixture
def tuner(compiled: Path, tmp_path: Path) -> Tuner:
    """Runs commands on a copy of the database."""
    shutil.copy(compiled, tmp_path / "results.db")
    return Tuner(tmp_path / "results.db", real_composition())


def test_export_tells_what_it_wrote(measured: Measured) -> None:
    assert measured.exported.code == 0, measured.exported.err
    document = measured.exported.json
    assert document["candidates"] == 2
    assert document["chips"] == ["sm_90"]
    assert list(document["problems"]) == ["matmul 16x8x8 f32 nn none"]
    assert document["bytes"] == measured.bundle.stat().st_size


def test_kernels_of_the_compiler_are_verified_and_timed_through_the_driver(measured: Measured) -> None:
    assert measured.done.code == 0, measured.done.err
    document = measured.done.json
    assert document["counts"] == {"measured": 2, "failed": 0, "left": 0, "other_chips": 0}
    assert document["machine"] == MACHINE
    (best,) = document["best"]
    assert best["strategy"] == "matmul_gpu_naive"
    assert best["baseline_s"] == 1e-6


def test_where_the_driver_takes_no_machine_code_its_ptx_is_compiled(measured: Measured) -> None:
    assert {trial.code for trial in read_results(measured.results).trials} == {"ptx"}


def test_results_come_back_and_every_command_sees_them(measured: Measured, tuner: Tuner) -> None:
    imported = tuner("bundle", "import", str(measured.results), "--json")
    assert imported.json == {"runs": 1, "trials": 2, "known": 0}
    rows = tuner("history", "--target", "cuda", "--machine", MACHINE, "--json").json
    assert [row["status"] for row in rows] == ["measured", "measured"]
    assert {row["run"] for row in rows} == {2}
    (best,) = tuner("history", "--best", "--json").json
    assert best["target"] == "cuda:sm_90"
    script = tuner("export", "matmul", SHAPE, "--target", "cuda:sm_90", "--machine", MACHINE)
    assert script.code == 0, script.err
    assert MACHINE in script.out
    assert "@__transform_main" in script.out
    shown = tuner("show", str(best["trial"]))
    assert MACHINE in shown.out
    assert "verified  128 elements, largest error" in shown.out
    run = tuner("show", "run:2")
    assert "elsewhere measuring" in run.out
    assert "cuBLAS 0.0" in run.out
    assert tuner("show", "run:2", "--json").json["elsewhere"]["driver"] == "13.0"


def test_a_second_import_and_a_second_export_add_nothing(measured: Measured, tuner: Tuner) -> None:
    tuner("bundle", "import", str(measured.results))
    again = tuner("bundle", "import", str(measured.results))
    assert again.out == "added 0 trials in 0 new runs; 2 were here already\n"
    nothing = tuner("bundle", "export", "-o", str(tuner.database.with_name("none")))
    assert nothing.code == 1
    assert nothing.err.startswith(
        "tuner: pending: found no compiled trial without a time, allowed after such"
    )


def test_a_run_that_was_measured_elsewhere_is_not_gone_on_with(measured: Measured, tuner: Tuner) -> None:
    tuner("bundle", "import", str(measured.results))
    done = tuner("tune", "--resume", "2")
    assert done.code == 2
    assert done.err == "tuner: run 2: was measured from a bundle, allowed a run that tuner tune began\n"


def test_results_are_refused_where_nobody_knows_their_trials(measured: Measured, tmp_path: Path) -> None:
    other = Tuner(tmp_path / "other.db", real_composition())
    done = other("bundle", "import", str(measured.results))
    assert done.code == 2
    assert "found a trial that is not in this database, nor its script" in done.err
    assert other("db", "info", "--json").json["runs"] == 0


def test_where_compiler_and_gpu_are_one_machine_no_file_is_needed(
    tuner: Tuner, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = simulated_gpu.here(no_baseline)
    monkeypatch.setattr(command, "gpu_here", lambda: gpu)
    monkeypatch.setattr(session, "FINAL_EFFORT", BRIEF)
    done = tuner("measure", "--pending")
    assert done.code == 0, done.err
    assert "2 measured, 0 failed" in done.out
    assert "bundle import" not in done.out
    assert "no baseline: none here" in done.err
    assert len(tuner("history", "--target", "cuda", "--json").json) == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("export", "-o", "x", "--limit", "0"), "limit: found 0, allowed 1 or more"),
        (("export", "-o", "x", "--seed", "-1"), "seed: found -1, allowed 0 or more"),
        (("export", "conv", "-o", "x"), "operation: found 'conv', allowed matmul"),
        (("export", "matmul", "8x8", "-o", "x"), "shape: found '8x8', allowed MxNxK"),
        (("export", "-o", "x", "--since", "soon"), "since: found 'soon', allowed such as"),
        (("export",), "Missing option '-o'"),
        (("export", "-o", "/proc/none/x"), "/proc/none/x: cannot be written"),
        (("import", "/none"), "/none: cannot be read: No such file or directory"),
    ],
)
def test_wrong_words_are_one_line_and_exit_2(tuner: Tuner, words: tuple[str, ...], message: str) -> None:
    done = tuner("bundle", *words)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"tuner: {message}")
    assert done.err.count("\n") == 1


def test_a_bundle_is_no_results_file(measured: Measured, tuner: Tuner) -> None:
    done = tuner("bundle", "import", str(measured.bundle))
    assert done.code == 2
    assert "found no text, allowed a file of tuner-results" in done.err


def test_a_results_file_without_a_bundle_is_refused(tuner: Tuner) -> None:
    done = tuner("measure", "--pending", "--results", "x")
    assert done.code == 2
    assert done.err == (
        "tuner: results: found a file without --bundle, allowed with one: the database takes them\n"
    )


def test_without_a_driver_measure_fails_by_one_line(
    tuner: Tuner, measured: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tuner.runtime.cuda import opening

    monkeypatch.setattr(opening, "LIBRARY", "libcuda-none.so")
    done = tuner("measure", "--bundle", str(measured.bundle))
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("tuner: no CUDA driver: libcuda-none.so cannot be loaded")


@pytest.mark.parametrize("seconds", ["0", "nan", "inf"])
def test_a_time_that_is_none_is_refused_before_a_gpu_is_looked_for(tuner: Tuner, seconds: str) -> None:
    done = tuner("measure", "--pending", "--seconds", seconds)
    assert (done.code, done.err) == (2, f"tuner: seconds: found {seconds}, allowed more than 0\n")
