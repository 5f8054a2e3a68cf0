"""The parts of a run that are for GPUs: what there is to compile, verify, time and compare with."""

from tuner.chips import CHIPS, chip_of
from tuner.device import DeviceError
from tuner.errors import UsageError
from tuner.machine import Machine, Roofline, gpu_machine
from tuner.problem import Problem
from tuner.runs import Vendor
from tuner.target import Effort
from tuner.target_name import TargetName
from tuner.tuning.child_call import MEMORY_BYTES, call_in_child
from tuner.tuning.composition import TargetStatus
from tuner.workers.limits import REFERENCE_FLOP_PER_S, Limits

COMPILE_TIMEOUT_S = 90.0  # ptxas itself ends after 60
SIMULATOR_TIMEOUT_S = 300.0  # the longest loops over K of a few blocks, on a machine that is busy
CUDA_TIMEOUT_S = 60.0  # for a context, code to load, inputs to draw and to upload
SLOWEST_CUDA_FLOP_PER_S = 5e10  # a tenth of one multiprocessor; what is slower counts as a hang
CUDA_CALLS = 60  # of a kernel that is slow but not hopeless: 20 warm samples, 20 cold ones, and around them
VENDOR_TIMEOUT_S = 180.0  # beside the float64 reference
GIB = 2**30


def machine_of(target: TargetName) -> Machine:
    """Returns the GPU that code for a target is made for: the one here where it is of that chip."""
    from tuner.runtime import gpu_probe

    chip = chip_of(target.chip)
    if target.kind != "cuda":
        return gpu_machine(target.kind, chip, "PTX simulator")
    try:
        facts = gpu_probe.describe_gpu().facts
        gpu_probe.require_chip(chip, facts)
    except DeviceError:
        return gpu_probe.machine_of(chip, None)
    return gpu_probe.machine_of(chip, facts)


def limits_of(target: TargetName, memory_bytes: int) -> Limits:
    """Returns limits that a simulation keeps, or a GPU."""
    if target.kind == "cuda":
        return Limits(COMPILE_TIMEOUT_S, CUDA_TIMEOUT_S, memory_bytes, SLOWEST_CUDA_FLOP_PER_S, CUDA_CALLS)
    return Limits(COMPILE_TIMEOUT_S, SIMULATOR_TIMEOUT_S, memory_bytes)


def gpu_statuses() -> tuple[TargetStatus, ...]:
    """Returns what can be done for GPUs here."""
    assembler = _assembler_words()
    simulator = f"verifies on the PTX simulator, no times; {assembler}"
    return (_cuda_status(assembler), TargetStatus("simulator", True, simulator, is_timed=False))


def gpu_vendor(problem: Problem, effort: Effort, seed: int) -> Vendor:
    """Times cuBLAS in a process of its own. Raises TunerError where there is none, or no GPU."""
    from tuner.reference import reference_bytes
    from tuner.tuning.vendor import gpu_vendor_spec

    timeout_s = VENDOR_TIMEOUT_S + problem.flop / REFERENCE_FLOP_PER_S
    memory_bytes = MEMORY_BYTES + 2 * reference_bytes(problem)
    work = (problem, effort, seed)
    vendor = call_in_child(gpu_vendor_spec(), "measure", work, timeout_s, memory_bytes)
    assert isinstance(vendor, Vendor)
    return vendor


def gpu_roofline(problem: Problem) -> Roofline:
    """Returns the limits of the GPU here, by a process of its own. Raises TunerError where none are known."""
    from tuner.workers.protocol import Factory, ServiceSpec

    spec = ServiceSpec("roofline", Factory("tuner.tuning.roofline:GpuRooflineCall"))
    roofline = call_in_child(spec, "measure", (problem.dtype,), VENDOR_TIMEOUT_S)
    assert isinstance(roofline, Roofline)
    return roofline


def _cuda_status(assembler: str) -> TargetStatus:
    from tuner.runtime.gpu_probe import describe_gpu

    try:
        here = describe_gpu()
    except DeviceError as error:
        reason = f"compiles only: {error}; {assembler}"
        return TargetStatus("cuda", False, reason, is_timed=False, can_compile=True)
    facts = here.facts
    if facts.chip not in CHIPS:
        reason = f"compiles only: {facts.name} is {facts.chip}, allowed {', '.join(CHIPS)}; {assembler}"
        return TargetStatus("cuda", False, reason, is_timed=False, can_compile=True)
    words = f"{facts.name}, {facts.chip}, {facts.multiprocessors} multiprocessors, "
    words += f"{facts.memory_bytes / GIB:.0f} GiB, CUDA driver {facts.driver_version}"
    reason = "; ".join((words, assembler, _sensor_words(here.bus)))
    return TargetStatus("cuda", True, reason, can_compile=True, chip=facts.chip)


def _sensor_words(bus: str) -> str:
    from tuner.runtime.gpu_telemetry import GpuSensors, SensorsError

    try:
        GpuSensors(bus)
    except SensorsError as error:
        return str(error)
    return "clocks and temperatures by NVML"


def _assembler_words() -> str:
    from tuner.cuda_tools.ptxas import find_ptxas

    try:
        ptxas = find_ptxas()
    except UsageError as error:
        return str(error)
    if ptxas is None:
        return "no ptxas, so PTX only and no resources (pip install mlir-tuner[cuda])"
    return f"ptxas {ptxas.version} of {ptxas.tool.origin}: {ptxas.tool.path}"
