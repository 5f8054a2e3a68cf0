"""The real thing, small: a GPU matmul tuned, verified, shown and exported without a GPU."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.gpu_check.stub_driver import stub_library
from tests.cli.conftest import Done, Tuner
from tuner.targets.gpu.compiler import find_ptxas
from tuner.targets.registry import KINDS, real_backends

pytestmark = pytest.mark.mlir

ROOT = Path(__file__).parents[3]
NEEDS_PTXAS = pytest.mark.skipif(find_ptxas() is None, reason="needs ptxas")


def run(database: Path, *phrase: str, **variables: str) -> Done:
    """Runs a command in a process of its own, which looks for a driver anew."""
    environment = os.environ | {"TUNER_DB": str(database)} | variables
    command = [sys.executable, "-m", "tuner", *phrase]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Tuner:
    """Gives commands a database with a run of two verified trials."""
    tuner = Tuner(tmp_path_factory.mktemp("gpu") / "results.db", real_backends())
    phrase = ("--dtype", "f16", "--target", "simulator", "--chip", "sm_90", "--trials", "2", "--workers", "1")
    done = tuner("tune", "matmul", "64x48x32", *phrase, "--json")
    assert done.code == 0, done.err
    assert done.json["counts"] == {
        "proposed": 2,
        "measured": 0,
        "verified": 2,
        "failed": 0,
        "reused": 0,
        "compiled": 0,
    }
    return tuner


@pytest.mark.slow
def test_verified_trials_are_reported(tuned: Tuner) -> None:
    first, second = tuned("history", "--status", "verified", "--json").json
    assert first["target"] == second["target"] == "simulator:sm_90"
    assert first["machine"] == "simulator sm_90"
    assert (first["median_s"], first["gflop_per_s"]) == (None, None)


@pytest.mark.slow
@NEEDS_PTXAS
def test_a_verified_trial_is_exported_as_ptx_and_cubin(tuned: Tuner, tmp_path: Path) -> None:
    ptx = tuned("export", "--trial", "1", "--format", "ptx").out
    assert ".target sm_90" in ptx
    assert "mma.sync" in ptx
    cubin = tmp_path / "k.cubin"
    assert tuned("export", "--trial", "1", "--format", "cubin", "-o", str(cubin)).code == 0
    assert cubin.read_bytes().startswith(b"\x7fELF")
    (kernel, *_) = tuned("show", "1", "--json").json["resources"]
    assert kernel["registers"] > 0


@pytest.mark.slow
def test_an_exported_script_is_verified_again_and_applied(tuned: Tuner, tmp_path: Path) -> None:
    script = tmp_path / "verified.mlir"
    assert tuned("export", "--trial", "1", "-o", str(script)).code == 0
    checked = tuned("check", str(script), "--json")
    assert (checked.code, checked.json["correct"], checked.json["median_s"]) == (0, True, None), checked.err
    payload = tuned("apply", str(script), str(tmp_path / "verified.source.mlir"))
    assert "gpu.launch" in payload.out, payload.err


@pytest.mark.skipif(KINDS["cuda"].status().is_available, reason="there is a GPU")
@pytest.mark.parametrize(
    ("phrase", "command"),
    [
        (("matmul", "64x48x32", "--dtype", "f16"), "tune matmul 64x48x32 --dtype f16"),
        (("program.mlir",), "tune program.mlir"),
    ],
    ids=["operation", "program"],
)
def test_cuda_without_a_driver_is_refused_before_anything_is_compiled(
    tmp_path: Path, phrase: tuple[str, ...], command: str
) -> None:
    tuner = Tuner(tmp_path / "results.db", real_backends())
    done = tuner("tune", *phrase, "--target", "cuda:sm_80")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 2)
    assert done.err.startswith("error: target cuda:sm_80: nothing runs here: no CUDA driver: libcuda.so.1 ")
    assert done.err.endswith(
        "\nhint: to verify without a GPU, and carry the result to one by tuner bundle export: "
        f"tuner {command} --target simulator:sm_80\n"
    )
    assert not tuner.database.exists()
    assert tuner("space", "matmul", "64x48x32", "--target", "cuda:sm_80").code == 0


@pytest.mark.slow
def test_a_gpu_is_tuned_for_by_default_and_one_that_does_nothing_is_found_out(tmp_path: Path) -> None:
    """The driver is a stand-in that launches nothing: all else is as on a machine with a GPU."""
    gpu = {"LD_LIBRARY_PATH": str(stub_library().parent)}
    database = tmp_path / "results.db"
    (_, cuda, *_) = run(database, "targets", "--json", **gpu).json
    assert (cuda["name"], cuda["available"]) == ("cuda", True)
    assert cuda["reason"].startswith("stub GPU 0, sm_90, 132 multiprocessors, ")
    done = run(
        database, "tune", "matmul", "64x48x32", "--dtype", "f16", "--trials", "1", "--workers", "1", **gpu
    )
    assert done.code == 1
    assert "1 x verify: 3072 of 3072 elements are wrong; worst at [0, 0]: found nan" in done.err
    assert "baseline: not measured: " in done.err
    (trial,) = Tuner(database, real_backends())("history", "--json").json
    assert (trial["target"], trial["machine"], trial["stage"]) == ("cuda:sm_90", "stub GPU 0", "verify")
    refused = run(database, "tune", "matmul", "64x48x32", "--target", "cuda:sm_80", "--trials", "1", **gpu)
    assert refused.code == 2
    assert "cuda:sm_80: the GPU here is sm_90\nhint: --target cuda:sm_90, or simulator:sm_80\n" in refused.err


@pytest.mark.parametrize(
    ("phrase", "message"),
    [
        (
            ("--dtype", "f16", "--target", "simulator", "--chip", "sm_70"),
            "chip: found 'sm_70', allowed sm_80,",
        ),
        (("--dtype", "f16"), "dtype: found 'f16', allowed f32, f64, bf16, i8 on target cpu"),
        (
            ("--dtype", "f16", "--target", "simulator", "--strategy", "matmul_gpu_simt"),
            "matmul_gpu_simt: dtype: found f16, allowed f32, f64",
        ),
    ],
)
def test_words_that_fit_no_target_exit_with_2(tmp_path: Path, phrase: tuple[str, ...], message: str) -> None:
    tuner = Tuner(tmp_path / "results.db", real_backends())
    assert message in tuner.refused("tune", "matmul", "64x48x32", *phrase)
