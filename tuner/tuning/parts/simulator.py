"""The target kind ``simulator``: simulated GPUs. Candidates are verified, not timed."""

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from tuner.core.chips import chip_of
from tuner.core.machine import Compiler, Machine, gpu_machine
from tuner.core.problem import Problem
from tuner.core.target_name import SIMULATOR, TargetName
from tuner.mlir.fingerprint import SIMULATOR_SOURCES
from tuner.tuning.outcome_source import BenchChildren
from tuner.tuning.parts.child_call import child_memory_bytes
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
from tuner.tuning.parts.untimed import untimed_outcomes
from tuner.tuning.target_kind import ProgramSupport, TargetKind, TargetStatus

if TYPE_CHECKING:
    from tuner.core.device import AbstractDevice
    from tuner.simulator.device.kernels import RunLaunch
    from tuner.simulator.device.lazy_streams import Order as WorkOrder
    from tuner.workers.limits import Limits

EVALUATION_TIMEOUT_S = 300.0  # the longest loops over K of a few blocks, on a busy machine
NO_CLOCK = "the simulator has no clock"


def simulator_limits(memory_bytes: int) -> "Limits":
    """Returns the time and memory limits of child processes that compile for, or simulate, a GPU.

    ``memory_bytes`` is the limit of each child's resident memory.
    """
    from tuner.workers.limits import Limits

    return Limits(COMPILE_TIMEOUT_S, EVALUATION_TIMEOUT_S, memory_bytes)


def _status() -> TargetStatus:
    reason = f"verifies on the PTX simulator, no times; {assembler_text()}"
    return TargetStatus(SIMULATOR, True, reason, is_timed=False)


def _machine(target: TargetName) -> Machine:
    return gpu_machine(SIMULATOR, chip_of(target.detail), "PTX simulator")


def _compiler(target: TargetName) -> Compiler:
    from tuner.targets.gpu.compiler import gpu_compiler_build
    from tuner.targets.gpu.ptxas import find_ptxas

    return gpu_compiler_build(chip_of(target.detail), find_ptxas(), SIMULATOR_SOURCES)


def _children(target: TargetName, problem: Problem, _threads: int) -> BenchChildren:
    from tuner.workers.library_environment import library_environment
    from tuner.workers.protocol import Factory

    return BenchChildren(
        compiler=compiler_factory(target),
        evaluator=Factory("tuner.targets.gpu.simulator:SimulatorEvaluator"),
        limits=simulator_limits(child_memory_bytes(problem)),
        environment=library_environment(1),  # the other cores compile
    )


def _open_device(
    chip: str,
    order: str,
    seed: int,
    *,
    write: "Callable[[str], object] | None" = None,
    run_launch: "RunLaunch | None" = None,
) -> "AbstractDevice":
    from tuner.simulator.device.simulated_device import SimulatedDevice

    return SimulatedDevice(chip, cast("WorkOrder", order), seed, write, run_launch)


KIND = TargetKind(
    name=SIMULATOR,
    status=_status,
    outcomes=untimed_outcomes(_machine, _compiler, _children, NO_CLOCK),
    source=gpu_source,
    load=load_on_gpu,
    code=gpu_code,
    assembly=gpu_assembly,
    default_chip=DEFAULT_CHIP,
    require_types=require_chip_types,
    programs=ProgramSupport(_open_device, is_simulated=True),
    sources=SIMULATOR_SOURCES,
)
