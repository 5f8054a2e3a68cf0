"""The processor of this machine as a kind of target."""

import shutil
import site
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runtime.cpu.faked_machines import FAKED, fake
from tuner.core.candidate import TargetName
from tuner.core.errors import TunerError, UsageError
from tuner.core.problem import Matmul
from tuner.targets.cpu.baseline_libraries import BLIS, LIBRARIES
from tuner.targets.cpu.target import KIND, host_machine

PROBLEM = Matmul(16, 16, 16)
TARGET = TargetName("cpu")
WITH_BF16 = "has avx2, avx512, avx512-bf16, vnni"
REFUSED = "has AMX, but the operating system refuses it"


def test_the_cpu_is_a_target_whose_machine_is_this_one() -> None:
    status = KIND.status()
    assert (status.name, status.is_timed) == ("cpu", True)
    assert KIND.outcomes.machine(TARGET) == host_machine()
    assert "linalg.matmul" in KIND.source(PROBLEM, "module {}")


@pytest.mark.parametrize(
    ("number", "facts"),
    [
        (2, "has avx2; peaks: f32, f64, bf16 by FMA; i8 by products of 16-bit integers"),
        (8, "has avx2, avx512, vnni; peaks: f32, f64, bf16 by FMA; i8 by VNNI"),
        (13, f"{WITH_BF16}, amx-bf16, amx-int8; peaks: f32, f64 by FMA; bf16, i8 by AMX"),
        (14, f"{WITH_BF16}; {REFUSED}; peaks: f32, f64 by FMA; bf16 by AVX512-BF16; i8 by VNNI"),
    ],
)
def test_its_status_says_what_was_found(
    number: int, facts: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(FAKED[number], tmp_path, monkeypatch)
    assert KIND.status().reason.endswith(f" cores; {facts}")


def test_a_processor_without_avx2_is_no_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(FAKED[0], tmp_path, monkeypatch)
    assert not KIND.status().is_available


@pytest.mark.mlir
def test_the_compiler_reports_its_packages_without_importing_them() -> None:
    assert dict(KIND.outcomes.compiler(TARGET).packages).keys() == {"numba-cuda-mlir", "torch-mlir"}
    program = (
        "import sys; from tuner.targets.cpu.target import KIND; from tuner.core.candidate import TargetName;"
        "print(KIND.outcomes.compiler(TargetName('cpu')).fingerprint);"
        "sys.exit('numba_cuda_mlir' in sys.modules)"
    )
    given = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "numba-cuda-mlir==" in given.stdout


@pytest.mark.slow
@pytest.mark.mlir
def test_the_baseline_is_measured_in_a_child_with_a_clean_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Prescott")
    baseline = KIND.outcomes.baseline(PROBLEM, 1, 0)
    assert "Prescott" not in baseline.name
    assert baseline.threads == 1
    assert baseline.measurement.median_s > 0


@pytest.mark.slow
@pytest.mark.mlir
def test_a_library_that_crashes_fails_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if LIBRARIES[BLIS].find() is not None:
        pytest.skip("BLIS is installed: its place is not free for a library that crashes")
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler for a library that crashes")
    (tmp_path / "lib").mkdir()
    (tmp_path / "crash.c").write_text("void bli_init(void) { __builtin_trap(); }")
    library = tmp_path / "lib" / "libblis.so.4"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, tmp_path / "crash.c"], check=True)
    monkeypatch.setattr(site, "USER_BASE", str(tmp_path))
    monkeypatch.setenv("PYTHONUSERBASE", str(tmp_path))
    baseline = KIND.outcomes_with("best").baseline(PROBLEM, 1, 0)
    failed = {each.library: each.failure for each in baseline.libraries if each.failure}
    assert failed.keys() == {"blis"}
    assert "SIGILL" in failed["blis"]
    assert {each.library for each in baseline.libraries} >= {"openblas", "blis"}
    with pytest.raises(TunerError, match="SIGILL"):
        KIND.outcomes_with("blis").baseline(PROBLEM, 1, 0)


def test_processors_take_their_types_and_what_only_gpus_take_is_refused() -> None:
    for dtype, output in (("f32", ""), ("f64", ""), ("bf16", ""), ("bf16", "bf16"), ("i8", "")):
        KIND.require_types(Matmul(8, 8, 8, dtype, output=output), TARGET)
    for dtype in ("f16", "tf32", "e4m3"):
        message = f"^dtype: found '{dtype}', allowed f32, f64, bf16, i8 on target cpu; cuda and simulator"
        with pytest.raises(UsageError, match=message):
            KIND.require_types(Matmul(8, 8, 8, dtype), TARGET)
