"""The target kind ``simulator``: simulated GPUs. Candidates are verified, not timed."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, cast

from tuner.core.candidate import SIMULATOR, TargetName
from tuner.core.gpu import chip_of
from tuner.core.gpu_code import KernelProgram
from tuner.core.machine import gpu_machine
from tuner.core.problem import Problem
from tuner.mlir.fingerprint import SIMULATOR_SOURCES
from tuner.runtime.workers.protocol import Factory, Limits
from tuner.runtime.workers.services import library_environment
from tuner.runtime.workers.worker import child_memory_bytes
from tuner.targets.children import untimed_measurement
from tuner.targets.gpu import cuda
from tuner.targets.interface import ProgramSupport, RunnerChildren, TargetBackend, TargetStatus

if TYPE_CHECKING:
    from tuner.core.gpu import AbstractDevice, StreamOrder
    from tuner.search.cost_model.untimed import PredictedCycles
    from tuner.simulator.device.kernels import RunLaunch

EVALUATION_TIMEOUT_S = 300.0  # the longest loops over K of a few blocks, on a busy machine
NO_CLOCK = "the simulator has no clock"


def simulator_limits(memory_bytes: int) -> "Limits":
    """Returns the limits of processes that compile for, or simulate, a GPU, each within ``memory_bytes``."""
    return Limits(cuda.COMPILE_TIMEOUT_S, EVALUATION_TIMEOUT_S, memory_bytes)


def _status() -> TargetStatus:
    return TargetStatus(SIMULATOR, True, "verifies on the PTX simulator, no times", is_timed=False)


def _children(target: TargetName, problem: Problem, _threads: int) -> RunnerChildren:
    return RunnerChildren(
        compiler=cuda.compiler_factory(target),
        evaluator=Factory("tuner.simulator.target.evaluator:SimulatorEvaluator"),
        limits=simulator_limits(child_memory_bytes(problem)),
        environment=library_environment(1),  # the other cores compile
    )


def _open_device(
    chip: str,
    order: str,
    seed: int,
    *,
    write: "Callable[[str], object] | None" = None,
    run_launch: Callable[..., object] | None = None,
) -> "AbstractDevice":
    from tuner.simulator.device.simulated_device import SimulatedDevice  # loads ml_dtypes

    return SimulatedDevice(
        chip, cast("StreamOrder", order), seed, write, cast("RunLaunch | None", run_launch)
    )


def _predicted(problem: Problem, program: KernelProgram) -> "PredictedCycles | None":
    from tuner.simulator.target.cycle_model import predicted  # loads the simulator

    return predicted(problem, program)


KIND = TargetBackend(
    name=SIMULATOR,
    status=_status,
    measurement=untimed_measurement(
        lambda target: gpu_machine(SIMULATOR, chip_of(target.detail), "PTX simulator"),
        partial(cuda.compiler_with, SIMULATOR_SOURCES),
        _children,
        NO_CLOCK,
    ),
    source=cuda.gpu_source,
    load=cuda.load_on_gpu,
    code=cuda.gpu_code,
    assembly=cuda.gpu_assembly,
    default_chip=cuda.DEFAULT_CHIP,
    require_types=cuda.require_chip_types,
    programs=ProgramSupport(_open_device, is_simulated=True),
    sources=SIMULATOR_SOURCES,
    predict=_predicted,
    tools=cuda.assembler_text,
)
