"""The guide to PyTorch models runs as printed: Python, the file of a model, and the command."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.guide import ROOT, blocks_of

pytestmark = pytest.mark.mlir

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

BLOCKS = blocks_of((ROOT / "docs/guides/pytorch.md").read_text())
PYTHON = [block.text for block in BLOCKS if block.language == "python"]
PRINTED = [block.text for block in BLOCKS if block.language == "text"]
(COMMAND,) = (block.text for block in BLOCKS if block.language == "sh")


def ran(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300
    )


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(PRINTED)))
def test_python_prints_what_the_page_says(number: int, tmp_path: Path) -> None:
    done = ran(tmp_path, "-W", "ignore", "-c", PYTHON[number])
    assert done.stdout.split() == PRINTED[number].split(), done.stderr


@pytest.mark.slow
def test_the_command_explains_the_model(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(PYTHON[-1])
    command = [sys.executable, "-m", "tuner", *shlex.split(COMMAND)[1:]]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert ran.returncode == 0, ran.stderr
    assert "equal   result 0" in ran.stdout
    assert "g0     contraction" in ran.stdout
