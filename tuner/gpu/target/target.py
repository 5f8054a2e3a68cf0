"""Targets of NVIDIA GPUs, by the device that runs code: the driver's for ``cuda``, or a simulated one."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, final

from tuner.core.candidate import CUDA, TargetName
from tuner.core.compiled_code import KernelCode
from tuner.core.dtypes import FLOAT8S, INPUT_DTYPES, TILE_DTYPES, unsupported_type
from tuner.core.errors import DeviceError, UsageError, install_extra
from tuner.core.gpu import CHIPS, chip_of, most_specific
from tuner.core.interfaces import FINAL_EFFORT, Script
from tuner.core.machine import Machine
from tuner.core.problem import NUMPY_ALIGNMENT, WARM, Problem
from tuner.core.quantization import CONSTANT
from tuner.core.queries import TrialQuery
from tuner.core.roofline import Roofline
from tuner.core.runs import Baseline, Compiler
from tuner.core.serialization import count_text
from tuner.core.trials import StoredTrial
from tuner.gpu.cost_model.untimed import deciding_facts, predicted_first
from tuner.gpu.driver import probe
from tuner.gpu.driver.probe import machine_for, open_device
from tuner.gpu.driver.roofline import gpu_roofline
from tuner.gpu.driver.sensors import GpuSensors, SensorsError
from tuner.gpu.payload.gpu import gpu_payload_mlir
from tuner.gpu.payload.scratch import scratch_in
from tuner.gpu.target.baseline import BASELINE_TIMEOUT_S, time_cublas_in_child
from tuner.mlir.fingerprint import CUDA_EXTRA, GPU_SOURCES, NO_PTX, Sources, has_ptx, require_ptx
from tuner.runtime.timing_lock import LockWait, TimingLock, holder_text
from tuner.runtime.workers.limits import GPU_CALLS, Limits
from tuner.runtime.workers.protocol import Factory
from tuner.runtime.workers.services import gpu_library_environment, library_environment
from tuner.runtime.workers.worker import call_in_child, child_memory_bytes
from tuner.targets.compiled_target import CompiledTarget
from tuner.targets.cpu.target import host_machine
from tuner.targets.target import ProgramSupport, RunnerChildren, TargetStatus, UntimedOrder

if TYPE_CHECKING:
    from tuner.core.compiled_code import Assemble, Predict, PredictedCycles
    from tuner.core.device import AbstractDevice
    from tuner.core.remote_results import PendingTrial
    from tuner.db.store import Store


DEFAULT_CHIP = "sm_90"
FLOAT8_CAPABILITY = 89  # PTX ISA, "mma": .e4m3 and .e5m2
COMPILE_TIMEOUT_S = 90.0  # ptxas is ended after 60
EVALUATION_TIMEOUT_S = 60.0  # to create a context, load code, draw and upload inputs
SLOWEST_FLOP_PER_S = 5e10  # a tenth of one multiprocessor; a slower kernel counts as a hang
GIB = 2**30


class GpuDevice(ProgramSupport):
    """A port: runs code for NVIDIA GPUs, kernels and whole programs, by the driver or by simulation."""

    name: str  # of the target
    sources: Sources
    has_device = True

    @abstractmethod
    def status(self) -> TargetStatus:
        """Returns whether the device is on this machine and times kernels, or why not."""

    @abstractmethod
    def tools(self) -> str:
        """Returns text on the device's tools, such as its sensors, for ``tuner targets``; or ""."""

    @abstractmethod
    def machine(self, chip: str) -> Machine:
        """Returns the description of a machine with this chip."""

    @abstractmethod
    def children(self, target: TargetName, problem: Problem) -> RunnerChildren:
        """Returns factories and limits of the child processes that compile and evaluate candidates."""

    @abstractmethod
    def baseline(self, problem: Problem, seed: int, wait: LockWait) -> Baseline:
        """Times a library on a problem; returns its name and times.

        Raises TunerError where nothing is timed, or if the library fails. ``wait``: how to wait for other
        tuners that time.
        """

    @abstractmethod
    def roofline(self, problem: Problem, wait: LockWait) -> Roofline:
        """Returns the highest flop/s and bytes/s of the device for a problem's type.

        Raises TunerError where nothing is timed. ``wait``: how to wait for other tuners that time.
        """

    @abstractmethod
    def predicted(self, problem: Problem, program: KernelCode) -> "PredictedCycles | None":
        """Returns the cycles that a model of the device predicts for a program; None: not predicted."""


@final
class NvidiaGpu(CompiledTarget):
    """A target for NVIDIA GPUs: compiles to PTX by MLIR and to a cubin by ptxas; a GpuDevice runs it."""

    default_chip = DEFAULT_CHIP
    chips = tuple(CHIPS)

    def __init__(self, device: GpuDevice) -> None:
        self._device = device
        self.name = device.name
        self.sources = device.sources
        self.programs = device
        self.untimed = GpuOrder()

    def status(self) -> TargetStatus:
        if not has_ptx():
            return TargetStatus(self.name, False, f"{NO_PTX}: {install_extra(CUDA_EXTRA)}")
        return self._device.status()

    def tools(self) -> str:
        return "; ".join(filter(None, (assembler_text(), self._device.tools())))

    def require_types(self, problem: Problem, target: TargetName) -> None:
        if problem.weights:
            what = "constant" if problem.weights == CONSTANT else "quantized"
            raise UsageError(f"weights: {what} weights are packed ahead for CPUs only", "--target cpu")
        if problem.align != NUMPY_ALIGNMENT:
            raise UsageError(
                f"--align {problem.align} cannot be combined with {target.text}: "
                "the driver aligns device memory"
            )
        if problem.cache != WARM:
            raise UsageError(
                f"--cache {problem.cache} cannot be combined with {target.text}: "
                "a GPU's result has both times"
            )
        if problem.dtype in TILE_DTYPES and not chip_of(target.detail).has_wgmma:
            taken = tuple(dtype for dtype in INPUT_DTYPES if dtype not in TILE_DTYPES)
            others = ", ".join(chip.name for chip in CHIPS.values() if chip.has_wgmma)
            where = f"on {target.text}; {others} and CPUs with AMX take it"
            raise unsupported_type(problem.dtype, taken, where)
        if problem.dtype in FLOAT8S and chip_of(target.detail).capability < FLOAT8_CAPABILITY:
            taken = tuple(dtype for dtype in INPUT_DTYPES if dtype not in FLOAT8S)
            later = f"sm_{FLOAT8_CAPABILITY} and later take it"
            raise unsupported_type(problem.dtype, taken, f"on {target.detail}; {later}")

    def machine(self, target: TargetName) -> Machine:
        return self._device.machine(target.detail)

    def compiler(self, target: TargetName) -> Compiler:
        from tuner.gpu.target.compiler import find_ptxas, gpu_compiler_build  # loads MLIR

        require_ptx()
        return gpu_compiler_build(chip_of(target.detail), find_ptxas(), self.sources)

    def children(self, target: TargetName, problem: Problem, threads: int) -> RunnerChildren:
        return self._device.children(target, problem)

    def baseline(self, problem: Problem, threads: int, seed: int, wait: LockWait) -> Baseline:
        return self._device.baseline(problem, seed, wait)

    def roofline(self, problem: Problem, threads: int, wait: LockWait) -> Roofline:
        return self._device.roofline(problem, wait)

    def source(self, problem: Problem, script: str) -> str:
        # with the buffers that comments of the script state
        return gpu_payload_mlir(problem, scratch_in(script, problem))

    def load(self, problem: Problem, trial: StoredTrial, program: KernelCode | None) -> Callable[..., object]:
        if program is None:
            raise UsageError(f"trial {trial.id}: no compiled program is stored")
        from tuner.gpu.target.callables import load_program  # loads ml_dtypes

        kernel: Callable[..., object] = load_program(problem, program, trial.summary)
        return kernel

    def code(self, target: TargetName, problem: Problem, script: Script) -> str:
        # the PTX alone, without ptxas
        from tuner.gpu.target.compiler import GpuCompiler  # loads MLIR

        ptx: str = GpuCompiler(chip_of(target.detail), lambda: None).compile(problem, script).code.text
        return ptx

    def assembly(self, code: str, program: KernelCode | None) -> str:
        from tuner.gpu.target.sass import sass  # loads MLIR

        return sass(program)

    def predicted(self, problem: Problem, program: KernelCode) -> "PredictedCycles | None":
        return self._device.predicted(problem, program)


@final
class GpuOrder(UntimedOrder):
    """Which trials of a run that nothing has timed a GPU should time first.

    By facts about their code, and by predicted cycles where there are any.
    """

    def promising(
        self, store: "Store", run: int, predict: "Predict", limit: int
    ) -> "tuple[PendingTrial, ...]":
        from tuner.db.pending_trials import pending_trials  # loads SQLAlchemy

        return predicted_first(pending_trials(store.database, TrialQuery(run=run)), predict, limit)

    def facts(self, trial: "PendingTrial") -> str:
        return deciding_facts(trial)


def compiler_factory(target: TargetName) -> Factory:
    """Returns a Factory with which a child process makes the compiler for the target's chip."""
    return Factory("tuner.gpu.target.compiler:GpuCompiler", (chip_of(target.detail),))


def assembler_text() -> str:
    """Returns text on this machine's ptxas: version, origin and known defects, or that it is missing."""
    from tuner.gpu.target.compiler import defect_line, defects_of, find_ptxas  # loads MLIR

    try:
        ptxas = find_ptxas()
    except UsageError as error:
        return str(error)
    if ptxas is None:
        return "no ptxas, so PTX only and no resources (pip install nvidia-cuda-nvcc)"
    known = "".join(f"; {defect_line(defect)}" for defect in defects_of(ptxas.version))
    return f"ptxas {ptxas.version} of {ptxas.tool.origin}: {ptxas.tool.path}{known}"


def cuda_limits(memory_bytes: int) -> Limits:
    """Returns the limits of child processes that compile and time GPU kernels; ``memory_bytes``: of each."""
    return Limits(COMPILE_TIMEOUT_S, EVALUATION_TIMEOUT_S, memory_bytes, SLOWEST_FLOP_PER_S, GPU_CALLS)


@final
class DriverDevice(GpuDevice):
    """The device of the target ``cuda``: this machine's GPU, by the CUDA driver."""

    name = CUDA
    sources = GPU_SOURCES
    is_simulated = False

    def status(self) -> TargetStatus:
        try:
            facts = probe.describe_gpu().facts
        except DeviceError as error:
            return _compiles_only(str(error))
        if facts.chip not in CHIPS:
            return _compiles_only(f"{facts.name} is {facts.chip}, allowed {', '.join(CHIPS)}")
        multiprocessors = count_text(facts.multiprocessors, "multiprocessor")
        reason = f"{facts.name}, {facts.chip}, {multiprocessors}, "
        reason += f"{facts.memory_bytes / GIB:.0f} GiB, CUDA driver {facts.driver_version}"
        here = most_specific(facts.chip)
        compatible = (chip.name for chip in CHIPS.values() if chip.capability == chip_of(here).capability)
        return TargetStatus(CUDA, True, reason, can_compile=True, chip=here, chips=tuple(compatible))

    def tools(self) -> str:
        # where there is a GPU, whether its sensors can be read
        try:
            here = probe.describe_gpu()
        except DeviceError:
            return ""
        try:
            GpuSensors(here.bus)
        except SensorsError as error:
            return str(error)
        return "clocks and temperatures by NVML"

    def machine(self, chip: str) -> Machine:
        return machine_for(chip_of(chip))

    def children(self, target: TargetName, problem: Problem) -> RunnerChildren:
        return RunnerChildren(
            compiler=compiler_factory(target),
            evaluator=Factory("tuner.gpu.target.evaluator:GpuEvaluator", (target.detail,)),
            limits=cuda_limits(child_memory_bytes(problem)),
            device=_bus(),
            # all cores for the float64 reference: kernels and cuBLAS run on the GPU
            environment=(*library_environment(host_machine().physical_cores), *gpu_library_environment()),
        )

    def baseline(self, problem: Problem, seed: int, wait: LockWait) -> Baseline:
        with TimingLock(_bus(), holder_text(problem), wait).held():
            return time_cublas_in_child(problem, FINAL_EFFORT, seed)

    def roofline(self, problem: Problem, wait: LockWait) -> Roofline:
        with TimingLock(_bus(), holder_text(problem), wait).held():
            return call_in_child("roofline", partial(measure_gpu_roofline, problem.dtype), BASELINE_TIMEOUT_S)

    def predicted(self, problem: Problem, program: KernelCode) -> "PredictedCycles | None":
        return None  # the model counts accesses that the simulator records

    def open_device(self, chip: str, order: str, seed: int, **simulated: object) -> "AbstractDevice":
        return open_device()

    def assembler(self, chip: str) -> "Assemble | None":
        from tuner.gpu.target.compiler import find_ptxas  # loads MLIR

        ptxas = find_ptxas()
        if ptxas is None:
            return None  # the driver compiles PTX
        empty = KernelCode(chip, "", b"", (), ())
        return lambda ptx, _names: ptxas.assemble(replace(empty, text=ptx)).binary


THIS_GPU = NvidiaGpu(DriverDevice())


def measure_gpu_roofline(dtype: str) -> Roofline:
    """Returns this GPU's documented peak flop/s in ``dtype``, and the measured bytes/s of copies.

    Raises TunerError if there is no GPU, if it fails, or if no peak is documented for its chip or ``dtype``.
    """
    from tuner.gpu.target.evaluator import open_gpu  # loads ml_dtypes

    here = probe.describe_gpu()
    return gpu_roofline(open_gpu(here).device, here.facts, dtype)


def _bus() -> str:
    try:
        return probe.describe_gpu().bus
    except DeviceError:
        return CUDA  # without a GPU, where nothing is timed


def _compiles_only(why: str) -> TargetStatus:
    reason = f"compiles only: {why}"
    return TargetStatus(CUDA, False, reason, is_timed=False, can_compile=True, missing=why)
