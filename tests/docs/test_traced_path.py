"""The page on architecture names files that a trial passes through: a run and its children are traced."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.source_files import ROOT

pytestmark = pytest.mark.mlir

PAGE = (ROOT / "docs" / "concepts" / "architecture.md").read_text()
ELSEWHERE = ("/gpu/", "/gpu.py")  # files of a trial on a GPU
ENTRIES = ("tuner/cli/commands/tune.py", "tuner/cli/session.py", "tuner/targets/cpu/evaluator.py")
# Each process writes the files whose functions it calls; bodies of modules and classes are not functions.
TRACER = """
import os, sys, threading
seen, stream = set(), open(os.path.join({folder!r}, str(os.getpid())), "a", buffering=1)
def profile(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_flags & 1 and code.co_filename not in seen:
        seen.add(code.co_filename)
        stream.write(code.co_filename + "\\n")
sys.setprofile(profile)
threading.setprofile(profile)
"""


def named_files() -> set[str]:
    """Returns the Python files that the table of a trial names."""
    table = PAGE.split("## A trial")[1].split("## A whole program")[0]
    return set(re.findall(r"`((?:tuner|db)/[\w/]+\.py)`", table))


@pytest.mark.slow
def test_a_trial_passes_through_each_file_that_the_page_names(tmp_path: Path) -> None:
    (tmp_path / "trace").mkdir()
    (tmp_path / "sitecustomize.py").write_text(TRACER.format(folder=str(tmp_path / "trace")))
    words = ("tune", "matmul", "32x48x64", "--trials", "3", "--db", f"sqlite:///{tmp_path / 'trials.db'}")
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-m", "tuner", *words]
    subprocess.run(command, check=True, capture_output=True, env=environment, cwd=ROOT, timeout=600)
    lines = "".join(file.read_text() for file in (tmp_path / "trace").iterdir()).splitlines()
    traced = {os.path.relpath(os.path.realpath(line), ROOT) for line in lines if line.startswith(str(ROOT))}
    named = {name for name in named_files() if not any(part in name for part in ELSEWHERE)}
    assert {*ENTRIES} <= named
    assert named - traced == set()
