"""An exported script does the same under stock mlir-opt as under ``tuner apply``."""

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Tuner
from tuner.space.scripts.header import RUN
from tuner.space.scripts.requirements import custom_ops
from tuner.targets.registry import real_backends

MLIR_OPT = shutil.which("mlir-opt-22")  # Debian: mlir-22-tools
pytestmark = [
    pytest.mark.mlir,
    pytest.mark.slow,
    pytest.mark.skipif(MLIR_OPT is None, reason="mlir-opt-22 is not installed (Debian: mlir-22-tools)"),
]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Tuner:
    """Gives a database with a real run."""
    tuner = Tuner(tmp_path_factory.mktemp("real") / "results.db", real_backends())
    phrase = ("--sampler", "random", "--trials", "6", "--workers", "1")
    done = tuner("tune", "matmul", "64x96x33", *phrase)
    assert done.code == 0, done.err
    return tuner


def stock_trial(tuner: Tuner) -> int:
    """Returns a trial whose script calls none of our own ops."""
    for trial in tuner("history", "--status", "measured", "--json").json:
        script = tuner("show", str(trial["trial"]), "--json").json["script"]
        if not custom_ops(script):
            return int(trial["trial"])
    raise AssertionError("every script calls own ops")


def run_mlir_opt(*phrase: str, folder: Path) -> str:
    assert MLIR_OPT is not None
    done = subprocess.run([MLIR_OPT, *phrase], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_the_command_in_the_header_runs(real: Tuner, tmp_path: Path) -> None:
    path = tmp_path / "best.mlir"
    assert real("export", "--trial", str(stock_trial(real)), "-o", str(path)).code == 0
    (line,) = [line for line in path.read_text().splitlines() if line.startswith(RUN)]
    program, *phrase = shlex.split(line.removeprefix(RUN))
    assert program == "mlir-opt"
    transformed = run_mlir_opt(*phrase, folder=tmp_path)
    assert "linalg.matmul" not in transformed
    assert "vector." in transformed


def test_an_exported_payload_is_stock_mlir(real: Tuner, tmp_path: Path) -> None:
    path = tmp_path / "payload.mlir"
    assert real("export", "matmul", "64x96x33", "--format", "payload", "-o", str(path)).code == 0
    assert "func.func @matmul" in run_mlir_opt(str(path), folder=tmp_path)


def test_a_real_export_passes_its_own_check(real: Tuner, tmp_path: Path) -> None:
    path = tmp_path / "best.mlir"
    assert real("export", "matmul", "64x96x33", "-o", str(path)).code == 0
    done = real("check", str(path), "--max-slowdown", "900%", "--json")  # only a crash is that slow
    results = {0: "not slower", 3: "cannot tell"}  # 3: while something else runs
    assert results.get(done.code) == done.json["finding"], done.out
    assert done.json["correct"]
