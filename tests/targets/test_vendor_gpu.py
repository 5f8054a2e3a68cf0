"""A vendor's distribution: one file of a target whose chips tuner has never heard of, and its entry point."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runtime.test_extensions import install
from tests.targets import vendor_gpu
from tests.texts import text_beside
from tuner.core.candidate import TargetName
from tuner.core.errors import UsageError
from tuner.core.matmul import Matmul
from tuner.core.plausibility import most_flop_per_s
from tuner.core.queries import TrialQuery
from tuner.db.store import Store
from tuner.runtime import extensions
from tuner.targets.backends import named_target, resolve_target, timed_here
from tuner.targets.registry import real_backends

ROOT = Path(__file__).parents[2]
VENDOR = "tuner_vendor_of_test"


@pytest.fixture(autouse=True)
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    shutil.copy(str(vendor_gpu.__file__), tmp_path / f"{VENDOR}.py")
    install(tmp_path, VENDOR, f"[tuner.targets]\nrocm = {VENDOR}:THIS_GPU\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    extensions.entry_points.cache_clear()
    yield tmp_path
    extensions.entry_points.cache_clear()


def test_a_target_answers_for_its_own_chips() -> None:
    backends = real_backends()
    assert named_target("rocm", backends, "gfx90a") == TargetName("rocm", "gfx90a")
    assert named_target("rocm", backends) == TargetName("rocm", "gfx942")
    assert resolve_target("auto", backends, "gfx942") == TargetName("rocm", "gfx942")
    assert next(timed_here(backends)) == TargetName("rocm", "gfx942")


@pytest.mark.parametrize(
    ("text", "chip", "message"),
    [
        ("cuda", "gfx942", r"^chip: found 'gfx942', allowed sm_80, .*, sm_120$"),
        ("rocm", "sm_90", "^chip: found 'sm_90', allowed gfx90a, gfx942$"),
        ("rocm", "gfx90a", "^target rocm:gfx90a: the GPU here is gfx942; --target rocm:gfx942$"),
        ("cpu", "gfx942", "^chip 'gfx942' cannot be combined with target cpu, only with .*, rocm$"),
        ("gfx942", "", r"; did you mean rocm:gfx942\?$"),
    ],
)
def test_chips_of_others_are_refused(text: str, chip: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        resolve_target(text, real_backends(), chip)


def test_nothing_known_of_nvidia_is_said_of_its_machine() -> None:
    machine = vendor_gpu.THIS_GPU.machine(TargetName("rocm", "gfx942"))
    assert "compute_capability" not in dict(machine.limits())
    assert most_flop_per_s(Matmul(8, 8, 8), machine, 1) == float("inf")


@pytest.mark.slow
def test_its_chip_is_tuned_for_and_exported(site: Path) -> None:
    (site / "tile.mlir").write_text(text_beside(__file__, "TILE"))
    variables = {**os.environ, "PYTHONPATH": f"{site}:{ROOT}", "XDG_DATA_HOME": str(site)}
    for command in (
        "tune matmul 16x16x16 --chip gfx942 --strategy tile.mlir --trials 1",
        "export matmul 16x16x16 --target rocm -o best.mlir",
        "tune matmul 16x16x16 --target rocm --strategy tile.mlir --trials 0",
    ):
        words = [sys.executable, "-m", "tuner", *command.split()]
        done = subprocess.run(words, cwd=site, env=variables, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    with Store.open_existing(str(site / "tuner" / "tuner.db")) as store:
        (trial,) = store.trials(TrialQuery())
    record = trial.record
    assert (record.target.text, record.status) == ("rocm:gfx942", "measured")
    assert "linalg" in (site / "best.mlir").read_text()
