"""The target ``cuda``: NVIDIA GPUs; and functions that the target ``simulator`` shares with it."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from tuner.core.candidate import CUDA, TargetName
from tuner.core.dtypes import FLOAT8S, INPUT_DTYPES
from tuner.core.errors import UsageError
from tuner.core.gpu import CHIPS, DeviceError, chip_of, most_specific
from tuner.core.gpu_code import KernelProgram
from tuner.core.interfaces import FINAL_EFFORT, Script
from tuner.core.machine import Compiler, Roofline
from tuner.core.problem import NUMPY_ALIGNMENT, WARM, Problem
from tuner.core.quantization import CONSTANT
from tuner.core.runs import Baseline, StoredTrial
from tuner.mlir.fingerprint import GPU_SOURCES, Sources
from tuner.payload.gpu import gpu_payload_mlir, scratch_in
from tuner.runtime.cuda import probe
from tuner.runtime.cuda.probe import GpuSensors, SensorsError, machine_for, open_device
from tuner.runtime.timing_lock import LockWait, TimingLock, holder_text
from tuner.runtime.workers.protocol import GPU_CALLS, Factory, Limits
from tuner.runtime.workers.services import gpu_library_environment, library_environment
from tuner.runtime.workers.worker import call_in_child, child_memory_bytes
from tuner.targets import interface
from tuner.targets.children import child_runner, child_runners, measure_gpu_roofline
from tuner.targets.cpu.target import host_machine
from tuner.targets.gpu.baseline import BASELINE_TIMEOUT_S, time_cublas_in_child
from tuner.targets.run_plan import bind, plan

if TYPE_CHECKING:
    from tuner.core.gpu import AbstractDevice
    from tuner.core.gpu_code import Assemble


DEFAULT_CHIP = "sm_90"
FLOAT8_CAPABILITY = 89  # PTX ISA, "mma": .e4m3 and .e5m2
COMPILE_TIMEOUT_S = 90.0  # ptxas is ended after 60


def require_chip_types(problem: Problem, target: TargetName) -> None:
    """Raises UsageError for types that the chip lacks, packed weights, a chosen alignment or cache state."""
    if problem.weights:
        what = "constant" if problem.weights == CONSTANT else "quantized"
        raise UsageError(f"weights: {what} weights are packed ahead for CPUs only", "--target cpu")
    if problem.align != NUMPY_ALIGNMENT:
        raise UsageError(
            f"--align {problem.align} cannot be combined with {target.text}: the driver aligns device memory"
        )
    if problem.cache != WARM:
        raise UsageError(
            f"--cache {problem.cache} cannot be combined with {target.text}: a GPU's result has both times"
        )
    if problem.dtype in FLOAT8S and chip_of(target.detail).capability < FLOAT8_CAPABILITY:
        taken = ", ".join(dtype for dtype in INPUT_DTYPES if dtype not in FLOAT8S)
        later = f"sm_{FLOAT8_CAPABILITY} and later take it"
        raise UsageError(f"dtype: found {problem.dtype!r}, allowed {taken} on {target.detail}; {later}")


def compiler_factory(target: TargetName) -> Factory:
    """Returns a recipe to build the compiler for the target's chip in another process, which finds ptxas."""
    return Factory("tuner.targets.gpu.compiler:GpuCompiler", (chip_of(target.detail),))


def compiler_with(sources: Sources, target: TargetName) -> Compiler:
    """Returns the identity (versions, hash of ``sources``) of the compiler build for the target's chip."""
    from tuner.targets.gpu.compiler import find_ptxas, gpu_compiler_build  # loads MLIR

    return gpu_compiler_build(chip_of(target.detail), find_ptxas(), sources)


def gpu_source(problem: Problem, script: str) -> str:
    """Returns a problem's payload, with the buffers that comments of ``script`` state; raises UsageError."""
    return gpu_payload_mlir(problem, scratch_in(script, problem))


def gpu_code(target: TargetName, problem: Problem, script: Script) -> str:
    """Returns the PTX that a script compiles to for a chip, without ptxas; raises CandidateError."""
    from tuner.targets.gpu.compiler import GpuCompiler  # loads MLIR

    return str(GpuCompiler(chip_of(target.detail), lambda: None).compile(problem, script).code)


def gpu_assembly(_code: str, program: KernelProgram | None) -> str:
    """Returns the machine code (SASS) of a compiled program as text; "" without nvdisasm or a cubin."""
    from tuner.targets.gpu.sass import sass  # loads MLIR

    return sass(program)


def load_on_gpu(problem: Problem, trial: StoredTrial, program: KernelProgram | None) -> Callable[..., object]:
    """Returns a trial's program as a callable; raises UsageError for None, or as ``load_program`` does."""
    if program is None:
        raise UsageError(f"trial {trial.id}: no compiled program is stored")
    from tuner.targets.gpu.callables import load_program  # loads ml_dtypes

    kernel: Callable[..., object] = load_program(problem, program, trial.summary)
    return kernel


def assembler_text() -> str:
    """Returns text that says which ptxas is used on this machine, if any, and which known defects it has."""
    from tuner.targets.gpu.compiler import defect_line, defects_of, find_ptxas  # loads MLIR

    try:
        ptxas = find_ptxas()
    except UsageError as error:
        return str(error)
    if ptxas is None:
        return "no ptxas, so PTX only and no resources (pip install nvidia-cuda-nvcc)"
    known = "".join(f"; {defect_line(defect)}" for defect in defects_of(ptxas.version))
    return f"ptxas {ptxas.version} of {ptxas.tool.origin}: {ptxas.tool.path}{known}"


EVALUATION_TIMEOUT_S = 60.0  # to create a context, load code, draw and upload inputs
SLOWEST_FLOP_PER_S = 5e10  # a tenth of one multiprocessor; a slower kernel counts as a hang
GIB = 2**30


def cuda_limits(memory_bytes: int) -> Limits:
    """Returns the limits of the processes that compile and time GPU kernels, each within ``memory_bytes``."""
    return Limits(COMPILE_TIMEOUT_S, EVALUATION_TIMEOUT_S, memory_bytes, SLOWEST_FLOP_PER_S, GPU_CALLS)


def _children(target: TargetName, problem: Problem, _threads: int) -> interface.RunnerChildren:
    return interface.RunnerChildren(
        compiler=compiler_factory(target),
        evaluator=Factory("tuner.targets.gpu.evaluator:GpuEvaluator", (target.detail,)),
        limits=cuda_limits(child_memory_bytes(problem)),
        device=_bus(),
        # all cores for the float64 reference: kernels and cuBLAS run on the GPU
        environment=(*library_environment(host_machine().physical_cores), *gpu_library_environment()),
    )


def _bus() -> str:
    try:
        return probe.describe_gpu().bus
    except DeviceError:
        return CUDA  # without a GPU, where nothing is timed


def _baseline(problem: Problem, _threads: int, seed: int, wait: LockWait) -> Baseline:
    with TimingLock(_bus(), holder_text(problem), wait).held():
        return time_cublas_in_child(problem, FINAL_EFFORT, seed)


def _roofline(problem: Problem, _threads: int, wait: LockWait) -> Roofline:
    with TimingLock(_bus(), holder_text(problem), wait).held():
        return call_in_child("roofline", partial(measure_gpu_roofline, problem.dtype), BASELINE_TIMEOUT_S)


def _status() -> interface.TargetStatus:
    try:
        facts = probe.describe_gpu().facts
    except DeviceError as error:
        return _compiles_only(str(error))
    if facts.chip not in CHIPS:
        return _compiles_only(f"{facts.name} is {facts.chip}, allowed {', '.join(CHIPS)}")
    reason = f"{facts.name}, {facts.chip}, {facts.multiprocessors} multiprocessors, "
    reason += f"{facts.memory_bytes / GIB:.0f} GiB, CUDA driver {facts.driver_version}"
    return interface.TargetStatus(CUDA, True, reason, can_compile=True, chip=most_specific(facts.chip))


def _compiles_only(why: str) -> interface.TargetStatus:
    reason = f"compiles only: {why}"
    return interface.TargetStatus(CUDA, False, reason, is_timed=False, can_compile=True, missing=why)


def _tools() -> str:
    """Returns which ptxas is used and, where there is a GPU, whether its sensors can be read."""
    try:
        here = probe.describe_gpu()
    except DeviceError:
        return assembler_text()
    sensors = "clocks and temperatures by NVML"
    try:
        GpuSensors(here.bus)
    except SensorsError as error:
        sensors = str(error)
    return f"{assembler_text()}; {sensors}"


def _open_device(_chip: str, _order: str, _seed: int, **_simulated: object) -> "AbstractDevice":
    return open_device()


def _assembler(chip: str) -> "Assemble | None":
    from tuner.targets.gpu.compiler import find_ptxas  # loads MLIR

    ptxas = find_ptxas()
    if ptxas is None:
        return None  # the driver compiles PTX
    empty = KernelProgram(chip, "", b"", (), ())
    return lambda ptx, _names: ptxas.assemble(replace(empty, ptx=ptx)).cubin


KIND = interface.TargetBackend(
    name=CUDA,
    status=_status,
    measurement=interface.MeasurementBackend(
        machine=lambda target: machine_for(chip_of(target.detail)),
        compiler=partial(compiler_with, GPU_SOURCES),
        plan=plan,
        bind=bind,
        runner=child_runner(_children),
        runners=child_runners(_children),
        baseline=_baseline,
        roofline=_roofline,
        children=_children,
        is_timed=lambda: _status().is_timed,
    ),
    source=gpu_source,
    load=load_on_gpu,
    code=gpu_code,
    assembly=gpu_assembly,
    default_chip=DEFAULT_CHIP,
    require_types=require_chip_types,
    programs=interface.ProgramSupport(_open_device, _assembler),
    sources=GPU_SOURCES,
    tools=_tools,
)
