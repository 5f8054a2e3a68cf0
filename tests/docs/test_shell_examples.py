"""Shell lines of the pages that are no commands of ours run as printed: mlir-opt, files cut and joined."""

import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Tuner
from tests.docs.guide import ROOT, blocks_of
from tests.docs.test_examples import EXAMPLES
from tests.targets.cpu.test_evaluator import ANYWHERE, MLIR_OPT, stock_point
from tests.texts import text_beside
from tests.tuning import fakes
from tuner.payload.cpu import partitions_in, payload_mlir
from tuner.targets.registry import real_backends

LARGE_BYTES = 41 << 20  # the page cuts files above 40 MiB


def lines_of(page: str, first: str) -> list[str]:
    blocks = (block.text for block in blocks_of((ROOT / page).read_text()) if block.language == "sh")
    (text,) = (text for text in blocks if text.startswith(first))
    return text.splitlines()


def run(script: str, folder: Path) -> str:
    done = subprocess.run(["bash", "-ec", script], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{script}\n{done.stderr}"
    return done.stdout


@pytest.mark.mlir
@pytest.mark.skipif(MLIR_OPT is None, reason="mlir-opt-22 is not installed (Debian: mlir-22-tools)")
def test_mlir_opt_and_apply_run_an_exported_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, by_mlir_opt, by_apply, *_ = lines_of("README.md", "tuner export matmul 512x512x512 -o best.mlir ")
    point, script = stock_point(ANYWHERE, next(each for each in ANYWHERE.kinds(1) if each.dtype == "f32"))
    (tmp_path / "best.mlir").write_text(script.text)
    payload = payload_mlir(point.problem, partitions_in(script.text, point.problem))
    (tmp_path / "best.source.mlir").write_text(payload)
    assert "linalg.matmul" not in run(by_mlir_opt, tmp_path)
    monkeypatch.chdir(tmp_path)
    options = by_apply.split("#")[0].split()[1:]
    applied = Tuner(tmp_path / "results.db", real_backends())(*options)
    assert applied.code == 0, applied.err
    assert "linalg.matmul" not in applied.out


@pytest.mark.slow
def test_large_files_are_cut_and_joined(tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    with (wheels / "large.whl").open("wb") as large:
        large.truncate(LARGE_BYTES)
    (wheels / "small.whl").write_bytes(b"small")
    here, there = "\n".join(lines_of("docs/guides/gpu-check.md", "cd wheels && sha256sum")).split("# there\n")
    run(here, tmp_path)
    assert sorted(path.name for path in wheels.glob("*.whl*")) == [
        "large.whl.aa",
        "large.whl.ab",
        "small.whl",
    ]
    run(there, tmp_path)
    assert (wheels / "large.whl").stat().st_size == LARGE_BYTES


AXPY = text_beside(__file__, "AXPY")


def test_the_kernel_of_the_help_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (options,) = {
        each.words for each in EXAMPLES if each.words[:2] == ("ptx", "run") and "--help" not in each.words
    }
    monkeypatch.chdir(tmp_path)
    (tmp_path / "axpy.ptx").write_text(AXPY)
    done = Tuner(tmp_path / "results.db", fakes.backends())(*options)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("axpy: 8 blocks, ")
