"""What a commit to tuner does to a user's history: comments nothing, another lowering makes outcomes unknown.

Real: a copy of the package is edited, and tunes next to the one that is tested, in a database of both.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tuner.core.candidate import Candidate
from tuner.core.queries import TrialQuery
from tuner.db.store import Store
from tuner.mlir.fingerprint import CPU_SOURCES, PACKAGE, files_of

TUNE = (
    "tune",
    "matmul",
    "48x64x80",
    "--strategy",
    "matmul_cpu_packed",
    "--seed",
    "3",
    "--baseline",
    "openblas",
)
NO_BUILTINS, MORE = (
    '"no-builtins"]',
    '"no-builtins", "nounwind"]',
)  # attributes of all functions that are made


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    ignored = shutil.ignore_patterns("__pycache__")
    return Path(shutil.copytree(PACKAGE, tmp_path / "edited" / "tuner", ignore=ignored))


def tuned(package: Path, database: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs ``tuner`` of a package; what is printed."""
    command = (sys.executable, "-P", "-m", "tuner", *arguments, "--db", str(database))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(package.parent), *sys.path))}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def candidates(store: Store, run: int) -> set[Candidate]:
    return {trial.record.candidate for trial in store.trials(TrialQuery(run=run))}


def common(store: Store, run: int) -> set[Candidate]:
    """Returns the candidates of a run that the first run had: the searches differ, as the first is known."""
    return candidates(store, run) & candidates(store, 1)


def reused(store: Store, run: int) -> set[Candidate]:
    """Returns the candidates of a run whose outcome was known."""
    trials = store.trials(TrialQuery(run=run))
    return {trial.record.candidate for trial in trials if trial.record.reused_from is not None}


@pytest.mark.slow
@pytest.mark.mlir
def test_comments_keep_outcomes_and_runs_and_another_lowering_does_not(tmp_path: Path, copy: Path) -> None:
    database = tmp_path / "history.db"
    first = tuned(PACKAGE, database, *TUNE, "--trials", "4")
    assert first.returncode == 0, first.stderr

    for file in files_of(CPU_SOURCES, copy):
        if file.suffix == ".py":
            file.write_text(file.read_text() + "\n# A remark.\n")
    again = tuned(copy, database, *TUNE, "--trials", "4")
    assert again.returncode == 0, again.stderr
    with Store.open(str(database)) as store:
        assert reused(store, 2) == common(store, 2) != set()
    resumed = tuned(copy, database, "tune", "--resume", "1", "--trials", "5")
    assert resumed.returncode == 0, resumed.stderr
    assert "tuner changed since: compiling" in resumed.stderr + resumed.stdout

    pipeline = copy / "mlir" / "cpu" / "pipeline.py"
    assert NO_BUILTINS in pipeline.read_text()
    pipeline.write_text(pipeline.read_text().replace(NO_BUILTINS, MORE))
    refused = tuned(copy, database, "tune", "--resume", "1", "--trials", "6")
    assert refused.returncode == 2
    assert "tuner's passes were changed since, and matmul_cpu_packed(" in refused.stderr
    anew = tuned(copy, database, *TUNE, "--trials", "4")
    assert anew.returncode == 0, anew.stderr
    with Store.open(str(database)) as store:
        assert common(store, 3) != set()
        assert reused(store, 3) == set()
