"""A distribution that adds a library to compare with: one file and its entry point."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.runtime.test_extensions import install
from tests.targets.cpu import vendor_library
from tuner.core.errors import TunerError, UsageError
from tuner.core.interfaces import FINAL_EFFORT
from tuner.core.matmul import Matmul
from tuner.core.queries import TrialQuery
from tuner.db.store import Store
from tuner.runtime import extensions
from tuner.targets.cpu.baseline import BaselineService
from tuner.targets.cpu.baseline_libraries import BEST, LIBRARIES, chosen_libraries, recorded_library
from tuner.targets.registry import TARGETS

ROOT = Path(__file__).parents[3]
THINGS = "library_of_test"
PROBLEM = Matmul(16, 24, 32)
Install = Callable[[str, str], Path]


@pytest.fixture
def adding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs the distribution, with an entry point of a name and an object of its file."""

    def add(name: str, entry_point: str) -> Path:
        shutil.copy(str(vendor_library.__file__), tmp_path / f"{THINGS}.py")
        install(tmp_path, THINGS, f"[tuner.baselines]\n{name} = {THINGS}:{entry_point}\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        extensions.entry_points.cache_clear()
        return tmp_path

    yield add
    extensions.entry_points.cache_clear()


def test_a_library_of_another_distribution_is_chosen_compared_and_recognized(adding: Install) -> None:
    adding("numpy", "LIBRARY")
    assert list(LIBRARIES)[-1] == "numpy"
    assert len(LIBRARIES) == len(list(LIBRARIES))
    TARGETS["cpu"].require_baseline("numpy", PROBLEM)
    assert chosen_libraries("numpy", PROBLEM) == ("numpy",)
    assert "numpy" in chosen_libraries(BEST, PROBLEM)
    assert chosen_libraries("", PROBLEM) == ("openblas",)
    assert recorded_library("numpy 2.3", PROBLEM) == "numpy"
    with pytest.raises(UsageError, match=r"^baseline numpy: cannot multiply f64"):
        chosen_libraries("numpy", Matmul(16, 24, 32, "f64"))
    with pytest.raises(UsageError, match=r"^baseline: found 'mlk', allowed best, .*, numpy"):
        chosen_libraries("mlk", PROBLEM)
    baseline = BaselineService(PROBLEM, 1, 0, "numpy").measure(FINAL_EFFORT)
    assert baseline.name.startswith("numpy ")


def test_a_library_that_breaks_its_contract_is_named_with_its_distribution(adding: Install) -> None:
    adding("broken", "BROKEN")
    with pytest.raises(TunerError, match=r"^library-of-test: baseline 'broken': KeyError: 'matmul'"):
        BaselineService(PROBLEM, 1, 0, "broken")


@pytest.mark.parametrize(
    ("name", "entry_point", "message"),
    [
        ("wrong", "WRONG", r"^library-of-test: baseline 'wrong': found int, allowed a BaselineLibrary"),
        ("gone", "GONE", r"^library-of-test: cannot load gone from library_of_test:GONE: AttributeError"),
        ("mkl", "LIBRARY", r"^tuner\.baselines: mlir-tuner and library-of-test both have 'mkl'"),
        ("best", "LIBRARY", r"^tuner\.baselines: mlir-tuner and library-of-test both have 'best'"),
    ],
)
def test_an_entry_point_that_is_not_a_new_library_is_refused(
    adding: Install, name: str, entry_point: str, message: str
) -> None:
    adding(name, entry_point)
    with pytest.raises(TunerError, match=message):
        chosen_libraries(BEST, PROBLEM)


@pytest.mark.slow
def test_a_run_compares_with_it(adding: Install) -> None:
    site = adding("numpy", "LIBRARY")
    variables = {**os.environ, "PYTHONPATH": f"{site}:{ROOT}", "XDG_DATA_HOME": str(site)}
    words = [
        sys.executable,
        "-m",
        "tuner",
        *["tune", "matmul", "64x64x64", "--baseline", "numpy", "--trials", "1"],
    ]
    done = subprocess.run(words, cwd=site, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with Store.open_existing(str(site / "tuner" / "tuner.db")) as store:
        (trial,) = store.trials(TrialQuery())
        run = store.run(trial.run)
    assert run.baseline is not None
    assert run.baseline.name.startswith("numpy ")
