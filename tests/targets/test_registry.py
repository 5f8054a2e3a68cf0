"""The kinds of targets: this processor, NVIDIA GPUs, and the simulated GPU; the types that they take."""

import contextlib
import shutil
import site
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.runtime.cpu.faked_machines import FAKED, fake
from tests.targets.gpu.simulated_cuda import FACTS, HERE, nothing_here
from tuner.core.candidate import TargetName
from tuner.core.errors import TunerError, UsageError
from tuner.core.fusions import FLOAT8S
from tuner.core.gpu import DeviceError, chip_of
from tuner.core.interfaces import Effort
from tuner.core.problem import INPUT_DTYPES, Matmul
from tuner.mlir.fingerprint import GPU_SOURCES, SIMULATOR_SOURCES, sources_sha256
from tuner.runtime.cuda import probe
from tuner.runtime.cuda.probe import GpuHere
from tuner.targets.cpu import target as cpu
from tuner.targets.cpu.baseline_libraries import BLIS, LIBRARIES
from tuner.targets.gpu import cuda
from tuner.targets.gpu import simulator_target as simulator
from tuner.targets.interface import TargetBackend

PROBLEM = Matmul(16, 16, 16)
CPU = TargetName("cpu")
WITH_BF16 = "has avx2, avx512, avx512-bf16, vnni"
REFUSED = "has AMX, but the operating system refuses it"


def test_the_cpu_is_a_target_whose_machine_is_this_one() -> None:
    status = cpu.KIND.status()
    assert (status.name, status.is_timed) == ("cpu", True)
    assert cpu.KIND.outcomes.machine(CPU) == cpu.host_machine()
    assert "linalg.matmul" in cpu.KIND.source(PROBLEM, "module {}")


@pytest.mark.parametrize(
    ("number", "facts"),
    [
        (2, "has avx2; peaks: f32, f64, bf16 by FMA; i8 by products of 16-bit integers"),
        (8, "has avx2, avx512, vnni; peaks: f32, f64, bf16 by FMA; i8 by VNNI"),
        (13, f"{WITH_BF16}, amx-bf16, amx-int8; peaks: f32, f64 by FMA; bf16, i8 by AMX"),
        (14, f"{WITH_BF16}; {REFUSED}; peaks: f32, f64 by FMA; bf16 by AVX512-BF16; i8 by VNNI"),
    ],
)
def test_its_status_reports(number: int, facts: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(FAKED[number], tmp_path, monkeypatch)
    assert cpu.KIND.status().reason.endswith(f" cores; {facts}")


def test_a_processor_without_avx2_is_no_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(FAKED[0], tmp_path, monkeypatch)
    assert not cpu.KIND.status().is_available


@pytest.mark.mlir
def test_the_compiler_reports_its_packages_without_importing_them() -> None:
    assert dict(cpu.KIND.outcomes.compiler(CPU).packages).keys() == {"numba-cuda-mlir", "torch-mlir"}
    program = (
        "import sys; from tuner.targets.cpu.target import KIND; from tuner.core.candidate import TargetName;"
        "print(KIND.outcomes.compiler(TargetName('cpu')).fingerprint);"
        "sys.exit('numba_cuda_mlir' in sys.modules)"
    )
    given = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "numba-cuda-mlir==" in given.stdout


@pytest.mark.slow
@pytest.mark.mlir
def test_the_baseline_is_measured_in_a_clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Prescott")
    baseline = cpu.KIND.outcomes.baseline(PROBLEM, 1, 0)
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
    baseline = cpu.KIND.outcomes_with("best").baseline(PROBLEM, 1, 0)
    failed = {each.library: each.failure for each in baseline.libraries if each.failure}
    assert failed.keys() == {"blis"}
    assert "SIGILL" in failed["blis"]
    assert {each.library for each in baseline.libraries} >= {"openblas", "blis"}
    with pytest.raises(TunerError, match="SIGILL"):
        cpu.KIND.outcomes_with("blis").baseline(PROBLEM, 1, 0)


def test_processors_take_their_types_and_what_only_gpus_take_is_refused() -> None:
    for dtype, output in (("f32", ""), ("f64", ""), ("bf16", ""), ("bf16", "bf16"), ("i8", "")):
        cpu.KIND.require_types(Matmul(8, 8, 8, dtype, output=output), CPU)
    for dtype in ("f16", "tf32", "e4m3"):
        message = f"^dtype: found '{dtype}', allowed f32, f64, bf16, i8 on target cpu; cuda and simulator"
        with pytest.raises(UsageError, match=message):
            cpu.KIND.require_types(Matmul(8, 8, 8, dtype), CPU)


SIMULATOR = TargetName("simulator", "sm_90")


def test_the_simulator_is_always_there_and_gives_no_times() -> None:
    status = simulator.KIND.status()
    assert (status.name, status.is_available, status.is_timed) == ("simulator", True, False)
    assert status.chip == ""
    assert "ptxas" in status.reason
    machine = simulator.KIND.outcomes.machine(SIMULATOR)
    assert machine.name == "simulator sm_90"
    assert dict(machine.limits())["max_shared_bytes"] == chip_of("sm_90").max_shared_bytes
    with pytest.raises(TunerError, match="the simulator has no clock"):
        simulator.KIND.outcomes.baseline(PROBLEM, 1, 0)
    with pytest.raises(TunerError, match="the simulator has no clock"):
        simulator.KIND.outcomes.roofline(PROBLEM, 1)


@pytest.mark.mlir
def test_a_verdict_is_of_this_simulator_and_the_compiler_reports_its_assembler() -> None:
    compiler = simulator.KIND.outcomes.compiler(SIMULATOR)
    assert compiler.pipeline_sha256 == sources_sha256(SIMULATOR_SOURCES)
    assert dict(compiler.packages).keys() == {"numba-cuda-mlir", "ptxas"}


def test_the_source_for_a_gpu_has_true_sizes_and_the_buffers_that_the_script_adds() -> None:
    source = simulator.KIND.source(PROBLEM, "// workspace: 2 32 64\nmodule {}")
    assert "%a: memref<16x16xf32>" in source
    assert "%slices: memref<2x32x64xf32>" in source


@pytest.mark.parametrize("kind", [cuda.KIND, simulator.KIND], ids=lambda kind: str(kind.name))
@pytest.mark.parametrize("dtype", INPUT_DTYPES)
def test_chips_before_sm_89_take_all_but_8_bit_floats(kind: TargetBackend, dtype: str) -> None:
    problem = Matmul(8, 8, 8, dtype)
    for chip in ("sm_89", "sm_90", "sm_90a", "sm_120"):
        kind.require_types(problem, TargetName(kind.name, chip))
    for chip in ("sm_80", "sm_86"):
        target = TargetName(kind.name, chip)
        if dtype not in FLOAT8S:
            kind.require_types(problem, target)
            continue
        message = f"^dtype: found '{dtype}', allowed f32, f64, .*, i8 on {chip}; sm_89 and later take it$"
        with pytest.raises(UsageError, match=message):
            kind.require_types(problem, target)


# NVIDIA GPUs as a kind of target, with a GPU that is described and one that is not there.


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "describe_gpu", nothing_here)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "describe_gpu", lambda: HERE)


def test_without_a_gpu_code_is_made_and_the_reason_told(no_gpu: None) -> None:
    status = cuda.KIND.status()
    assert (status.name, status.is_available, status.can_compile) == ("cuda", False, True)
    assert not status.is_timed
    assert status.reason.startswith("compiles only: no CUDA driver: libcuda.so.1 cannot be loaded; ")
    assert "ptxas" in status.reason
    assert status.chip == ""
    assert cuda.KIND.outcomes.machine(TargetName("cuda", "sm_90")).name == "cuda sm_90"


def test_a_gpu_is_reported_with_all_that_is_known_of_it(gpu: None) -> None:
    status = cuda.KIND.status()
    assert (status.is_available, status.is_timed, status.chip) == (True, True, "sm_90")
    assert status.reason.startswith("Simulated GPU, sm_90, 4 multiprocessors, 1 GiB, CUDA driver 13.0; ")
    assert "no clocks or temperatures: " in status.reason or "by NVML" in status.reason


def test_a_gpu_that_no_code_can_be_made_for_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    old = GpuHere(replace(FACTS, name="Tesla T4", chip="sm_75"), HERE.bus)
    monkeypatch.setattr(probe, "describe_gpu", lambda: old)
    status = cuda.KIND.status()
    assert (status.is_available, status.can_compile, status.chip) == (False, True, "")
    assert "Tesla T4 is sm_75, allowed sm_80, sm_86" in status.reason


def test_the_machine_is_described_by_the_gpu_here_if_it_is_of_the_chip(gpu: None) -> None:
    machine = cuda.KIND.outcomes.machine(TargetName("cuda", "sm_90"))
    assert (machine.name, machine.chip, machine.physical_cores) == ("Simulated GPU", "sm_90", 4)
    assert machine.processor == "Simulated GPU, CUDA driver 13.0"
    assert (machine.l3_bytes, machine.memory_bytes) == (FACTS.l2_bytes, FACTS.memory_bytes)
    assert dict(machine.limits())["sm_count"] == 4
    assert cuda.KIND.outcomes.machine(TargetName("cuda", "sm_90a")).name == "Simulated GPU"
    assert cuda.KIND.outcomes.machine(TargetName("cuda", "sm_80")).name == "cuda sm_80"


@pytest.mark.mlir
def test_the_compiler_is_the_wheel_the_assembler_and_what_makes_code() -> None:
    compiler = cuda.KIND.outcomes.compiler(TargetName("cuda", "sm_80"))
    assert "ptxas" in dict(compiler.packages)
    assert compiler.pipeline_sha256 == sources_sha256(GPU_SOURCES)


def test_a_hanging_kernel_is_ended_sooner_than_a_slow_simulation() -> None:
    problem, effort = Matmul(4096, 4096, 4096), Effort()
    limits = cuda.cuda_limits(1 << 30)
    first, later = (limits.evaluation_limit_s(problem, effort, call_s) for call_s in (None, 1e-3))
    assert first < 600
    assert later < 120
    assert simulator.simulator_limits(1 << 30).evaluation_timeout_s == 300


@pytest.mark.parametrize("work", ["baseline", "roofline"])
def test_without_a_gpu_nothing_of_it_is_measured(work: str) -> None:
    with contextlib.suppress(DeviceError):
        pytest.skip(f"there is a GPU here: {probe.describe_gpu()}")
    outcomes, problem = cuda.KIND.outcomes, Matmul(64, 64, 64, "f16")
    with pytest.raises(TunerError, match=f"^{work}: no (CUDA|cuBLAS)"):
        outcomes.baseline(problem, 1, 0) if work == "baseline" else outcomes.roofline(problem, 1)
