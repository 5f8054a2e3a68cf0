"""The target kind ``cuda``: NVIDIA GPUs. Compiling needs no GPU; verifying and timing does."""

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from tuner.core.chips import CHIPS, chip_of
from tuner.core.device import DeviceError
from tuner.core.machine import Compiler, Machine, Roofline
from tuner.core.problem import Problem
from tuner.core.runs import Baseline
from tuner.core.target import Effort
from tuner.core.target_name import CUDA, TargetName
from tuner.mlir.fingerprint import GPU_SOURCES
from tuner.tuning.outcome_source import BenchChildren, OutcomeSource
from tuner.tuning.parts import strategy_space
from tuner.tuning.parts.child_bench import child_bench, child_benches
from tuner.tuning.parts.child_call import call_in_child, child_memory_bytes
from tuner.tuning.parts.child_functions import measure_gpu_baseline, measure_gpu_roofline
from tuner.tuning.parts.gpu import (
    COMPILE_TIMEOUT_S,
    DEFAULT_CHIP,
    assembler_text,
    compiler_factory,
    gpu_assembly,
    gpu_code,
    gpu_source,
    load_on_gpu,
    require_chip_types,
)
from tuner.tuning.target_kind import ProgramSupport, TargetKind, TargetStatus

if TYPE_CHECKING:
    from tuner.core.device import AbstractDevice
    from tuner.core.device_program import Assemble
    from tuner.workers.limits import Limits

EVALUATION_TIMEOUT_S = 60.0  # to create a context, load code, draw and upload inputs
SLOWEST_FLOP_PER_S = 5e10  # a tenth of one multiprocessor; a slower kernel counts as a hang
BASELINE_TIMEOUT_S = 180.0  # in addition to the float64 reference
GIB = 2**30


def cuda_limits(memory_bytes: int) -> "Limits":
    """Returns the time and memory limits of the child processes that compile and time GPU kernels.

    ``memory_bytes`` is the limit of each child's resident memory.
    """
    from tuner.workers.limits import GPU_CALLS, Limits

    return Limits(COMPILE_TIMEOUT_S, EVALUATION_TIMEOUT_S, memory_bytes, SLOWEST_FLOP_PER_S, GPU_CALLS)


def gpu_baseline(problem: Problem, effort: Effort, seed: int) -> Baseline:
    """Times cuBLAS on a problem in a separate process; returns its name and time.

    Raises TunerError where cuBLAS or the GPU is missing or fails, cuBLAS's result is wrong, or the process
    exceeds a limit.
    """
    from tuner.workers.library_environment import gpu_library_environment
    from tuner.workers.limits import REFERENCE_FLOP_PER_S

    timeout_s = BASELINE_TIMEOUT_S + problem.flop / REFERENCE_FLOP_PER_S
    work, memory_bytes = partial(measure_gpu_baseline, problem, effort, seed), child_memory_bytes(problem)
    return call_in_child("baseline", work, timeout_s, memory_bytes, gpu_library_environment())


def _machine(target: TargetName) -> Machine:
    """Returns this machine's GPU if it is of the target's chip, else a machine with only the chip known."""
    from tuner.runtime.cuda.probe import machine_for

    return machine_for(chip_of(target.detail))


def _compiler(target: TargetName) -> Compiler:
    from tuner.targets.gpu.compiler import gpu_compiler_build
    from tuner.targets.gpu.ptxas import find_ptxas

    return gpu_compiler_build(chip_of(target.detail), find_ptxas(), GPU_SOURCES)


def _children(target: TargetName, problem: Problem, _threads: int) -> BenchChildren:
    from tuner.tuning.parts.cpu import host_machine
    from tuner.workers.library_environment import gpu_library_environment, library_environment
    from tuner.workers.protocol import Factory

    return BenchChildren(
        compiler=compiler_factory(target),
        evaluator=Factory("tuner.targets.gpu.evaluator:GpuEvaluator", (target.detail,)),
        limits=cuda_limits(child_memory_bytes(problem)),
        device=_bus(),
        # all cores for the float64 reference: kernels and cuBLAS run on the GPU
        environment=(*library_environment(host_machine().physical_cores), *gpu_library_environment()),
    )


def _bus() -> str:
    """Returns the PCI address of this machine's GPU; "cuda" without a GPU, where nothing is timed."""
    from tuner.runtime.cuda.probe import describe_gpu

    try:
        return describe_gpu().bus
    except DeviceError:
        return CUDA


def _baseline(problem: Problem, _threads: int, seed: int) -> Baseline:
    from tuner.tuning.remeasurement import FINAL_EFFORT
    from tuner.workers.timing_lock import TimingLock, holder_text

    with TimingLock(_bus(), holder_text(problem)).held():
        return gpu_baseline(problem, FINAL_EFFORT, seed)


def _roofline(problem: Problem, _threads: int) -> Roofline:
    """Returns the roofline of this machine's GPU, measured in a separate process.

    Raises TunerError where the GPU is missing or has no documented peak.
    """
    from tuner.workers.timing_lock import TimingLock, holder_text

    with TimingLock(_bus(), holder_text(problem)).held():
        return call_in_child("roofline", partial(measure_gpu_roofline, problem.dtype), BASELINE_TIMEOUT_S)


def _status() -> TargetStatus:
    from tuner.runtime.cuda import probe

    assembler = assembler_text()
    try:
        here = probe.describe_gpu()
    except DeviceError as error:
        return _compiles_only(str(error), assembler)
    facts = here.facts
    if facts.chip not in CHIPS:
        return _compiles_only(f"{facts.name} is {facts.chip}, allowed {', '.join(CHIPS)}", assembler)
    text = f"{facts.name}, {facts.chip}, {facts.multiprocessors} multiprocessors, "
    text += f"{facts.memory_bytes / GIB:.0f} GiB, CUDA driver {facts.driver_version}"
    reason = "; ".join((text, assembler, _sensor_text(here.bus)))
    return TargetStatus(CUDA, True, reason, can_compile=True, chip=facts.chip)


def _compiles_only(why: str, assembler: str) -> TargetStatus:
    reason = f"compiles only: {why}; {assembler}"
    return TargetStatus(CUDA, False, reason, is_timed=False, can_compile=True, missing=why)


def _sensor_text(bus: str) -> str:
    from tuner.runtime.cuda.nvml_sensors import GpuSensors, SensorsError

    try:
        GpuSensors(bus)
    except SensorsError as error:
        return str(error)
    return "clocks and temperatures by NVML"


def _open_device(_chip: str, _order: str, _seed: int, **_simulated: object) -> "AbstractDevice":
    """Opens this machine's GPU; arguments for simulated devices are ignored."""
    from tuner.runtime.cuda.opening import open_device

    return open_device()


def _assembler(chip: str) -> "Assemble | None":
    """Returns a function that assembles PTX for ``chip``; None without ptxas: the driver compiles PTX."""
    from tuner.core.kernel_program import KernelProgram
    from tuner.targets.gpu.ptxas import find_ptxas

    ptxas = find_ptxas()
    if ptxas is None:
        return None
    empty = KernelProgram(chip, "", b"", (), ())
    return lambda ptx, _names: ptxas.assemble(replace(empty, ptx=ptx)).cubin


KIND = TargetKind(
    name=CUDA,
    status=_status,
    outcomes=OutcomeSource(
        machine=_machine,
        compiler=_compiler,
        plan=strategy_space.plan,
        bind=strategy_space.bind,
        bench=child_bench(_children),
        benches=child_benches(_children),
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
    programs=ProgramSupport(_open_device, _assembler),
    sources=GPU_SOURCES,
)
