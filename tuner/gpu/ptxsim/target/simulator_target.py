"""The simulated GPU of the target ``simulator``. Candidates are verified, not timed."""

from collections.abc import Callable
from typing import TYPE_CHECKING, cast, final

from tuner.core.candidate import SIMULATOR, TargetName
from tuner.core.compiled_code import KernelCode
from tuner.core.errors import TunerError
from tuner.core.gpu import chip_of
from tuner.core.machine import Machine, gpu_machine
from tuner.core.problem import Problem
from tuner.core.roofline import Roofline
from tuner.core.runs import Baseline
from tuner.gpu.target.target import COMPILE_TIMEOUT_S, GpuDevice, NvidiaGpu, compiler_factory
from tuner.mlir.fingerprint import SIMULATOR_SOURCES
from tuner.runtime.timing_lock import LockWait
from tuner.runtime.workers.limits import Limits
from tuner.runtime.workers.protocol import Factory
from tuner.runtime.workers.services import library_environment
from tuner.runtime.workers.worker import child_memory_bytes
from tuner.targets.target import RunnerChildren, TargetStatus

if TYPE_CHECKING:
    from tuner.core.compiled_code import Assemble, PredictedCycles
    from tuner.core.device import AbstractDevice, StreamOrder
    from tuner.gpu.ptxsim.device.kernels import RunLaunch

EVALUATION_TIMEOUT_S = 300.0  # the longest loops over K of a few blocks, on a busy machine
NO_CLOCK = "the simulator has no clock"


def simulator_limits(memory_bytes: int) -> Limits:
    """Returns the limits of child processes that compile for a GPU or simulate one.

    ``memory_bytes``: memory that each child process may use.
    """
    return Limits(COMPILE_TIMEOUT_S, EVALUATION_TIMEOUT_S, memory_bytes)


@final
class SimulatorDevice(GpuDevice):
    """The device of the target ``simulator``: a GPU of any chip in host memory, which interprets PTX."""

    name = SIMULATOR
    sources = SIMULATOR_SOURCES
    is_simulated = True

    def status(self) -> TargetStatus:
        return TargetStatus(SIMULATOR, True, "verifies on the PTX simulator, no times", is_timed=False)

    def tools(self) -> str:
        return ""

    def machine(self, chip: str) -> Machine:
        return gpu_machine(SIMULATOR, chip_of(chip), "PTX simulator")

    def children(self, target: TargetName, problem: Problem) -> RunnerChildren:
        return RunnerChildren(
            compiler=compiler_factory(target),
            evaluator=Factory("tuner.gpu.ptxsim.target.evaluator:SimulatorEvaluator"),
            limits=simulator_limits(child_memory_bytes(problem)),
            environment=library_environment(1),  # the other cores compile
        )

    def baseline(self, problem: Problem, seed: int, wait: LockWait) -> Baseline:
        raise TunerError(NO_CLOCK)

    def roofline(self, problem: Problem, wait: LockWait) -> Roofline:
        raise TunerError(NO_CLOCK)

    def predicted(self, problem: Problem, program: KernelCode) -> "PredictedCycles | None":
        from tuner.gpu.ptxsim.target.cycle_model import predicted  # loads the simulator

        return predicted(problem, program)

    def open_device(
        self,
        chip: str,
        order: str,
        seed: int,
        *,
        write: "Callable[[str], object] | None" = None,
        run_launch: Callable[..., object] | None = None,
    ) -> "AbstractDevice":
        from tuner.gpu.ptxsim.device.simulated_device import SimulatedDevice  # loads ml_dtypes

        launch = cast("RunLaunch | None", run_launch)
        return SimulatedDevice(chip, cast("StreamOrder", order), seed, write, launch)

    def assembler(self, chip: str) -> "Assemble | None":
        return None


SIMULATED_GPU = NvidiaGpu(SimulatorDevice())
