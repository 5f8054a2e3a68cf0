"""The parts of a run that are for GPUs: what there is to compile, verify and run with."""

from tuner.chips import chip_of
from tuner.errors import UsageError
from tuner.machine import Machine, gpu_machine
from tuner.target_name import TargetName
from tuner.tuning.composition import TargetStatus
from tuner.workers.limits import Limits

COMPILE_TIMEOUT_S = 90.0  # ptxas itself ends after 60
JUDGE_TIMEOUT_S = 300.0  # the longest loops over K of a few blocks, on a machine that is busy
PROCESSORS = {"cuda": "NVIDIA GPU", "simulator": "PTX simulator"}


def machine_of(target: TargetName) -> Machine:
    """Returns the GPU that code for a target is made for."""
    return gpu_machine(target.kind, chip_of(target.chip), PROCESSORS[target.kind])


def gpu_limits(memory_bytes: int) -> Limits:
    """Returns limits that a simulation keeps."""
    return Limits(COMPILE_TIMEOUT_S, JUDGE_TIMEOUT_S, memory_bytes)


def gpu_statuses() -> tuple[TargetStatus, ...]:
    """Returns what can be done for GPUs here."""
    assembler, driver = _assembler_words(), _driver_words()
    simulator = f"verifies on the PTX simulator, no times; {assembler}"
    return (
        TargetStatus(
            "cuda", False, f"compiles only: {driver}; {assembler}", is_timed=False, can_compile=True
        ),
        TargetStatus("simulator", True, simulator, is_timed=False),
    )


def _assembler_words() -> str:
    from tuner.cuda_tools.ptxas import find_ptxas

    try:
        ptxas = find_ptxas()
    except UsageError as error:
        return str(error)
    if ptxas is None:
        return "no ptxas, so PTX only and no resources (pip install mlir-tuner[cuda])"
    return f"ptxas {ptxas.version} of {ptxas.tool.origin}: {ptxas.tool.path}"


def _driver_words() -> str:
    from tuner.runtime.cuda_driver import has_driver

    return "a CUDA driver is here, this version does not run on it" if has_driver() else "no CUDA driver"
