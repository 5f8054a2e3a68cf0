"""Times the baseline in a child process whose environment cannot slow it down."""

from collections.abc import Callable

from tuner.core.problem import Problem
from tuner.core.runs import Baseline
from tuner.core.target import Effort
from tuner.workers.library_environment import gpu_library_environment, library_environment
from tuner.workers.protocol import Factory, ServiceSpec


class BaselineCall:
    """Serves one measurement; numpy is imported here with the environment that the spec gives."""

    def __init__(self, announce: Callable[[str], None], threads: int) -> None:
        self._threads = threads

    def measure(self, problem: Problem, effort: Effort, seed: int) -> Baseline:
        """Returns the library's name and time. Raises TunerError when none can do the problem."""
        from tuner.targets.cpu.baseline import BaselineService

        return BaselineService(problem, self._threads, seed).measure(effort)


def baseline_spec(threads: int) -> ServiceSpec:
    """Describes the child for so many threads."""
    factory = Factory("tuner.tuning.parts.baseline:BaselineCall", (threads,))
    return ServiceSpec("baseline", factory, library_environment(threads))


class GpuBaselineCall:
    """Serves one measurement on the GPU."""

    def __init__(self, announce: Callable[[str], None]) -> None:
        """Takes what every service is given; a measurement that is alone announces nothing."""

    def measure(self, problem: Problem, effort: Effort, seed: int) -> Baseline:
        """Returns cuBLAS's name and time. Raises TunerError where there is none, or no GPU."""
        from tuner.targets.gpu.baseline import judge_here, time_cublas

        return time_cublas(judge_here(), problem, effort, seed)


def gpu_baseline_spec() -> ServiceSpec:
    """Describes the child for the GPU."""
    return ServiceSpec(
        "baseline", Factory("tuner.tuning.parts.baseline:GpuBaselineCall"), gpu_library_environment()
    )
