"""The targets, and their work in child processes: templates bound, scripts applied, ports built."""

import contextlib
import re
import site
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.gpu.target.simulated_cuda import FACTS, HERE, nothing_here
from tests.runtime.c_libraries import build_library
from tests.runtime.cpu.faked_machines import FAKED, fake
from tests.targets.evaluation import fails
from tests.texts import text_beside
from tuner.core.candidate import Candidate, TargetName
from tuner.core.dtypes import CPU_DTYPES, FLOAT8S, INPUT_DTYPES, NARROW_OUTPUTS, TILE_DTYPES
from tuner.core.errors import CandidateError, DeviceError, Stage, TunerError, UsageError
from tuner.core.gpu import CHIPS, chip_of
from tuner.core.interfaces import AbstractCompiler, AbstractEvaluator, Effort
from tuner.core.machine import variables_of
from tuner.core.matmul import Matmul
from tuner.core.processors import PROCESSORS
from tuner.core.runs import ChosenStrategy
from tuner.gpu.driver import probe
from tuner.gpu.driver.probe import GpuHere
from tuner.gpu.ptxsim.target import simulator_target as simulator
from tuner.gpu.target import target as cuda
from tuner.mlir.fingerprint import GPU_SOURCES, SIMULATOR_SOURCES, Sources, sources_sha256
from tuner.runtime.timing_lock import LockWait
from tuner.runtime.workers.protocol import Factory
from tuner.runtime.workers.worker import call_in_child
from tuner.space.scripts.strategy import Binder, load_strategy
from tuner.targets.cpu import target as cpu
from tuner.targets.cpu.baseline_libraries import BLIS, LIBRARIES
from tuner.targets.registry import TARGETS, real_backends
from tuner.targets.run_plan import MEMORY_BYTES, ChildBinder, bind
from tuner.targets.target import Bind, Target

PROBLEM = Matmul(16, 16, 16)
CPU = TargetName("cpu")
WITH_BF16 = "has avx2, avx512, avx512-bf16, vnni"
REFUSED = "has AMX, but the operating system refuses it"


def test_the_cpu_is_a_target_whose_machine_is_this_one() -> None:
    status = TARGETS["cpu"].status()
    assert (status.name, status.is_timed) == ("cpu", True)
    assert TARGETS["cpu"].machine(CPU) == cpu.host_machine()
    assert "linalg.matmul" in TARGETS["cpu"].source(PROBLEM, "module {}")


@pytest.mark.parametrize(
    ("number", "facts"),
    [
        (2, "has avx2; peaks: f32, f64, bf16, f16 by FMA; i8 by products of 16-bit integers"),
        (8, "has avx2, avx512, vnni; peaks: f32, f64, bf16, f16 by FMA; i8 by VNNI"),
        (13, f"{WITH_BF16}, amx-bf16, amx-int8; peaks: f32, f64, f16 by FMA; bf16, i8 by AMX"),
        (14, f"{WITH_BF16}; {REFUSED}; peaks: f32, f64, bf16, f16 by FMA; i8 by VNNI"),
    ],
)
def test_its_status_reports(number: int, facts: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(FAKED[number], tmp_path, monkeypatch)
    assert TARGETS["cpu"].status().reason.endswith(f"; {facts}")


@pytest.mark.parametrize(("count", "text"), [(1, "1 core"), (2, "2 cores")])
def test_its_status_counts_cores(count: int, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = replace(cpu.host_machine(), physical_cores=count)
    monkeypatch.setattr(cpu, "host_machine", lambda _limit: machine)
    assert TARGETS["cpu"].status().reason.startswith(f"{machine.name}, {text}; has ")


def test_a_processor_without_avx2_is_no_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(FAKED[0], tmp_path, monkeypatch)
    assert not TARGETS["cpu"].status().is_available


@pytest.mark.mlir
def test_the_compiler_reports_its_packages_without_importing_them() -> None:
    assert dict(TARGETS["cpu"].compiler(CPU).packages).keys() == {"torch-mlir"}
    program = (
        "import sys; from tuner.targets.cpu.target import Cpu; from tuner.core.candidate import TargetName;"
        "print(Cpu().compiler(TargetName('cpu')).fingerprint);"
        "sys.exit('torch_mlir' in sys.modules)"
    )
    given = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "torch-mlir==" in given.stdout


@pytest.mark.slow
@pytest.mark.mlir
def test_the_baseline_is_measured_in_a_clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = TARGETS["cpu"].baseline(PROBLEM, 1, 0, LockWait())
    assert (plain.threads, plain.measurement.median_s > 0) == (1, True)
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Prescott")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "64")
    again = TARGETS["cpu"].baseline(PROBLEM, 1, 0, LockWait())
    assert replace(again, measurement=plain.measurement) == plain


@pytest.mark.slow
@pytest.mark.mlir
def test_a_library_that_crashes_fails_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if LIBRARIES[BLIS].find() is not None:
        pytest.skip("BLIS is installed: its place is not free for a library that crashes")
    (tmp_path / "lib").mkdir()
    (tmp_path / "crash.c").write_text("void bli_init(void) { __builtin_trap(); }")
    build_library(tmp_path / "lib" / "libblis.so.4", tmp_path / "crash.c")
    monkeypatch.setattr(site, "USER_BASE", str(tmp_path))
    monkeypatch.setenv("PYTHONUSERBASE", str(tmp_path))
    baseline = TARGETS["cpu"].with_baseline("best").baseline(PROBLEM, 1, 0, LockWait())
    failed = {each.library: each.failure for each in baseline.libraries if each.failure}
    assert failed.keys() == {"blis"}
    assert "SIGILL" in failed["blis"]
    assert {each.library for each in baseline.libraries} >= {"openblas", "blis"}
    with pytest.raises(TunerError, match="SIGILL"):
        TARGETS["cpu"].with_baseline("blis").baseline(PROBLEM, 1, 0, LockWait())


def test_processors_take_their_types_and_what_only_gpus_take_is_refused() -> None:
    for dtype in (*CPU_DTYPES, *TILE_DTYPES):
        for output in ("", *NARROW_OUTPUTS.get(dtype, ())):
            TARGETS["cpu"].require_types(Matmul(8, 8, 8, dtype, output=output), CPU)
    allowed = {"tf32": "^math: found 'tf32', allowed ieee, bf16x6 on target cpu; cuda and"}
    allowed["e4m3"] = "^dtype: found 'e4m3', allowed f32, f64, bf16, f16, i8 on target cpu; cuda and"
    for dtype, message in allowed.items():
        with pytest.raises(UsageError, match=message):
            TARGETS["cpu"].require_types(Matmul(8, 8, 8, dtype), CPU)


def test_f16_is_refused_in_one_line_where_the_processor_does_not_convert_it() -> None:
    for problem in (Matmul(8, 8, 8, "f16"), Matmul(8, 8, 8, "f16", output="f16")):
        cpu.require_conversions(problem, {"avx2", "fma", "f16c"})
        with pytest.raises(UsageError, match=r"^dtype f16: needs the instructions f16c, which"):
            cpu.require_conversions(problem, {"avx2", "fma"})
    cpu.require_conversions(Matmul(8, 8, 8, "bf16"), set())


def test_the_simulator_is_always_there_and_gives_no_times() -> None:
    status = TARGETS["simulator"].status()
    assert (status.name, status.is_available, status.is_timed) == ("simulator", True, False)
    assert (status.chip, "ptxas" in TARGETS["simulator"].tools()) == ("", True)
    machine = TARGETS["simulator"].machine(TargetName("simulator", "sm_90"))
    assert machine.name == "simulator sm_90"
    assert dict(machine.limits())["max_shared_bytes"] == chip_of("sm_90").max_shared_bytes
    measurement = TARGETS["simulator"]
    wait = LockWait()
    for time in (
        partial(measurement.baseline, PROBLEM, 1, 0, wait),
        partial(measurement.roofline, PROBLEM, 1, wait),
    ):
        with pytest.raises(TunerError, match="the simulator has no clock"):
            time()


def test_the_source_for_a_gpu_has_true_sizes_and_the_buffers_that_the_script_adds() -> None:
    source = TARGETS["simulator"].source(PROBLEM, "// workspace: 2 32 64\nmodule {}")
    assert "%a: memref<16x16xf32>" in source
    assert "%slices: memref<2x32x64xf32>" in source


@pytest.mark.parametrize("kind", [TARGETS["cuda"], TARGETS["simulator"]], ids=lambda kind: str(kind.name))
def test_gpus_without_wgmma_refuse_f32_by_six_products(kind: Target) -> None:
    kind.require_types(Matmul(8, 8, 8, "bf16x6"), TargetName(kind.name, "sm_90a"))
    for chip in sorted(CHIPS.keys() - {"sm_90a"}):
        allowed = f"ieee, tf32, tf32x3 on {kind.name}:{chip}; sm_90a and CPUs with AMX take it"
        with pytest.raises(UsageError, match=f"^math: found 'bf16x6', allowed {allowed}"):
            kind.require_types(Matmul(8, 8, 8, "bf16x6"), TargetName(kind.name, chip))


@pytest.mark.parametrize("kind", [TARGETS["cuda"], TARGETS["simulator"]], ids=lambda kind: str(kind.name))
@pytest.mark.parametrize("dtype", [dtype for dtype in INPUT_DTYPES if dtype not in TILE_DTYPES])
def test_chips_before_sm_89_take_all_but_8_bit_floats(kind: Target, dtype: str) -> None:
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


# NVIDIA GPUs as a target, with a GPU that is described and one that is not there.


def test_without_a_gpu_code_is_made_and_the_reason_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "describe_gpu", nothing_here)
    status = TARGETS["cuda"].status()
    assert (status.name, status.is_available, status.can_compile) == ("cuda", False, True)
    assert (status.is_timed, status.chip) == (False, "")
    assert status.reason.startswith("compiles only: no CUDA driver: libcuda.so.1 cannot be loaded")
    assert "ptxas" in TARGETS["cuda"].tools()
    assert TARGETS["cuda"].machine(TargetName("cuda", "sm_90")).name == "cuda sm_90"


def test_a_gpu_and_its_machine_are_reported_with_all_that_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "describe_gpu", lambda: HERE)
    status = TARGETS["cuda"].status()
    assert (status.is_available, status.is_timed, status.chip) == (True, True, "sm_90a")
    assert status.reason.startswith("Simulated GPU, sm_90, 4 multiprocessors, 1 GiB, CUDA driver 13.0")
    assert re.search("ptxas.*(no clocks or temperatures: |by NVML)", TARGETS["cuda"].tools())
    machine = TARGETS["cuda"].machine(TargetName("cuda", "sm_90"))
    assert (machine.name, machine.chip, machine.physical_cores) == ("Simulated GPU", "sm_90", 4)
    assert machine.processor == "Simulated GPU, CUDA driver 13.0"
    assert (machine.l3_bytes, machine.memory_bytes) == (FACTS.l2_bytes, FACTS.memory_bytes)
    assert dict(machine.limits())["sm_count"] == 4
    assert TARGETS["cuda"].machine(TargetName("cuda", "sm_90a")).name == "Simulated GPU"
    assert TARGETS["cuda"].machine(TargetName("cuda", "sm_80")).name == "cuda sm_80"


def test_a_part_of_a_gpu_may_have_one_multiprocessor(monkeypatch: pytest.MonkeyPatch) -> None:
    part = GpuHere(replace(FACTS, multiprocessors=1), HERE.bus)
    monkeypatch.setattr(probe, "describe_gpu", lambda: part)
    assert ", sm_90, 1 multiprocessor, " in TARGETS["cuda"].status().reason


def test_a_gpu_that_no_code_can_be_made_for_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    old = GpuHere(replace(FACTS, name="Tesla T4", chip="sm_75"), HERE.bus)
    monkeypatch.setattr(probe, "describe_gpu", lambda: old)
    status = TARGETS["cuda"].status()
    assert (status.is_available, status.can_compile, status.chip) == (False, True, "")
    assert "Tesla T4 is sm_75, allowed sm_80, sm_86" in status.reason


@pytest.mark.mlir
@pytest.mark.parametrize(("kind", "sources"), [("cuda", GPU_SOURCES), ("simulator", SIMULATOR_SOURCES)])
def test_the_compiler_is_the_wheel_the_assembler_and_what_makes_code(kind: str, sources: Sources) -> None:
    compiler = TARGETS[kind].compiler(TargetName(kind, "sm_80"))
    assert dict(compiler.packages).keys() == {"numba-cuda-mlir", "torch-mlir", "ptxas"}
    assert compiler.pipeline_sha256 == sources_sha256(sources)


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
    outcomes, problem = TARGETS["cuda"], Matmul(64, 64, 64, "f16")
    name = "" if work == "baseline" else f"{work}: "
    measure: dict[str, Callable[[], object]] = {
        "baseline": partial(outcomes.baseline, problem, 1, 0, LockWait()),
        "roofline": partial(outcomes.roofline, problem, 1, LockWait()),
    }
    with pytest.raises(TunerError, match=f"^{name}no (CUDA|cuBLAS)"):
        measure[work]()


# Work in child processes.
TEMPLATED = Matmul(8, 16, 4)
MACHINE = PROCESSORS["haswell"].machine
# For years in many operations, for hours in one, to 6 GiB, or well behaved.
TEMPLATE = """{% if how == "loop" %}{% for a in range(99999) %}{% for b in range(99999) %}
{% for c in range(99999) %}{% endfor %}{% endfor %}{% endfor %}
{% elif how == "power" %}{{ 3 ** (n ** 8) % 10 }}
{% elif how == "grow" %}{% set kept = [] %}
{% for a in range(99999) %}{% set _ = kept.append(n ~ "x" * 2 ** 16) %}{% endfor %}
{% else %}how: {{ how }} {{ m }}{% endif %}"""


def written(folder: Path) -> Path:
    script = folder / "mine.mlir.j2"
    script.write_text(TEMPLATE)
    return script


def bound(folder: Path, timeout_s: float = 60.0) -> Bind:
    return bind((ChosenStrategy("mine", written(folder)),), TEMPLATED, 1, MACHINE, timeout_s)


def here(folder: Path) -> Binder:
    variables = variables_of(TEMPLATED, MACHINE, 1)
    return Binder((load_strategy("mine", written(folder)),), TEMPLATED, variables, 1)


def mine(how: str) -> Candidate:
    return Candidate.of("mine", {"how": how})


@pytest.mark.slow
@pytest.mark.parametrize("how", ["loop", "power"])
def test_a_template_that_never_ends_fails_to_bind(tmp_path: Path, how: str) -> None:
    bind = bound(tmp_path, timeout_s=0.5)
    with fails(Stage.BIND, match=r"^timed out after 0\.5 s$"):
        bind(mine(how))


@pytest.mark.slow
def test_a_template_that_grows_too_large_fails_to_bind_and_the_next_is_bound(tmp_path: Path) -> None:
    bind = bound(tmp_path)
    with fails(Stage.BIND, match=rf"^exceeded {MEMORY_BYTES >> 20} MiB of memory$"):
        bind(mine("grow"))
    assert bind(mine("fast")).text == "how: fast 8\n"


def test_a_child_binds_as_this_process_does(tmp_path: Path) -> None:
    bind, binder = bound(tmp_path), here(tmp_path)
    for how in ("a", "b"):
        assert bind(mine(how)) == binder.bind(mine(how))
    for wrong in (Candidate.of("mine", {}), Candidate.of("other", {})):
        with pytest.raises(CandidateError) as expected:
            binder.bind(wrong)
        with fails(expected.value.failure.stage, match=f"^{re.escape(expected.value.failure.reason)}$"):
            bind(wrong)


def test_the_child_ends_with_its_binder(tmp_path: Path) -> None:
    binder = ChildBinder(here(tmp_path), 60.0)
    binder.bind(mine("fast"))
    worker = binder.worker
    assert worker.child is not None
    del binder
    assert worker.child is None


def test_what_is_shipped_is_bound_here() -> None:
    shipped = bind((ChosenStrategy("matmul_cpu_packed"),), TEMPLATED, 1, MACHINE)
    assert isinstance(getattr(shipped, "__self__", None), Binder)


def fail(stage: Stage) -> None:
    raise CandidateError(stage, "too wide")


@pytest.mark.slow
@pytest.mark.parametrize(("stage", "is_of_user"), [(Stage.BIND, True), (Stage.COMPILE, False)])
def test_what_does_not_parse_is_a_mistake_of_the_user(stage: Stage, is_of_user: bool) -> None:
    with pytest.raises(TunerError, match=r"^apply: too wide$") as caught:
        call_in_child("apply", partial(fail, stage), 60.0)
    assert isinstance(caught.value, UsageError) == is_of_user
    assert not isinstance(caught.value, CandidateError)


SOURCE = "func.func @f() {\n  return\n}\n"
RENAME = text_beside(__file__, "RENAME")
BROKEN = RENAME.replace('transform.annotate %func "seen"', "transform.loop.unroll %func { factor = 4 }")


def test_each_target_has_a_machine_of_its_own_processors_come_first_and_simulations_give_no_times() -> None:
    processor = real_backends().machine()
    assert processor.physical_cores >= 1
    assert processor.memory_bytes > 2**20
    targets = (TargetName("cpu"), TargetName("simulator", "sm_80"), TargetName("cuda", "sm_90a"))
    of_cpu, simulated, gpu = (real_backends().target(each).machine(each) for each in targets)
    assert (of_cpu, simulated.name, gpu.chip) == (processor, "simulator sm_80", "sm_90a")
    statuses = real_backends().statuses()
    assert [status.name for status in statuses] == ["cpu", "cuda", "simulator", "replay"]
    assert [status.is_timed for status in statuses if status.name in ("cpu", "simulator")] == [True, False]
    with pytest.raises(UsageError, match=r"^target 'tpu:v5': not known here$"):
        real_backends().target(TargetName("tpu", "v5"))


@pytest.mark.mlir
def test_a_script_is_applied_in_a_child() -> None:
    assert "func.func @f() attributes {seen}" in real_backends().apply(RENAME, SOURCE)


@pytest.mark.slow
@pytest.mark.mlir
@pytest.mark.parametrize(
    ("script", "payload"), [("module {", SOURCE), (RENAME, "nonsense"), (SOURCE, SOURCE), (BROKEN, SOURCE)]
)
def test_no_script_or_payload_is_the_users_mistake_a_failure_is_reported(script: str, payload: str) -> None:
    error, place = (TunerError, "") if script == BROKEN else (UsageError, "(script|payload):")
    with pytest.raises(error, match=f"apply: {place}"):
        real_backends().apply(script, payload)


CHILDREN_OF = (TargetName("cpu"), TargetName("cuda", "sm_90"), TargetName("simulator", "sm_90"))
IMPORTED = """
import importlib, sys
importlib.import_module(sys.argv[1])
print(*(name for name in sys.modules if name.startswith("tuner.")))
"""


def modules_imported_by(factory: Factory) -> set[str]:
    """Returns the modules and packages that a new process imports to build what a factory describes."""
    module, _, _ = factory.path.partition(":")
    options = (sys.executable, "-c", IMPORTED, module)
    return set(subprocess.run(options, capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.slow
@pytest.mark.mlir
@pytest.mark.parametrize("target", CHILDREN_OF, ids=str)
def test_a_child_builds_one_of_both_ports(target: TargetName) -> None:
    children = TARGETS[target.kind].children(target, Matmul(8, 8, 8), 1)
    compiler, evaluator = children.compiler.build(), children.evaluator.build()
    ports = (AbstractCompiler, AbstractEvaluator)
    assert [isinstance(compiler, port) for port in ports] == [True, False]
    assert [isinstance(evaluator, port) for port in ports] == [False, True]
    runs_kernels = {"tuner.gpu.driver", "tuner.runtime.cpu.thread_team", "tuner.gpu.ptxsim"}
    assert not modules_imported_by(children.compiler) & runs_kernels
    if target.kind != "cpu":  # whose evaluator makes machine code of the LLVM dialect
        assert not modules_imported_by(children.evaluator) & {"tuner.mlir.bindings"}
