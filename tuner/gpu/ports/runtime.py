"""Runs compiled programs on a GPU, real or simulated, and interprets kernels and functions."""

from collections.abc import Callable
from typing import Any

from tuner.core.device import AbstractDevice
from tuner.core.device_programs import DeviceProgram
from tuner.core.errors import CandidateError, Refusal
from tuner.gpu.interpreter.host_functions import NotInterpretedError, read_function
from tuner.gpu.interpreter.host_kernels import InterpretedKernels
from tuner.gpu.run.device_function import DeviceFunction
from tuner.gpu.run.mgpu import SIGNATURES
from tuner.runtime.programs.devices import DeviceRuntime
from tuner.runtime.programs.runner_functions import Write

ALLOWED = ", allowed "  # what follows it in a message does not say why a text is not interpreted


class GpuRuntime(DeviceRuntime):
    """Runs programs by the CUDA driver or in the simulator; interprets kernels of the GPU dialect."""

    host_functions = frozenset(SIGNATURES)

    def function(
        self, program: DeviceProgram, device: AbstractDevice, write: Write, why_no_fusions: str = ""
    ) -> DeviceFunction:
        return DeviceFunction(program, device, write, why_no_fusions)

    def host_kernels(self, text: str, write: Write) -> InterpretedKernels:
        return InterpretedKernels(text, write)

    def interpreted(
        self, text: str, entry: str, arguments: tuple[Any, ...], write: Write
    ) -> tuple[Any, ...] | Refusal:
        try:
            return tuple(read_function(text, entry)(arguments, write))
        except CandidateError as error:
            raise CandidateError(error.stage, f"as written: {error.reason}") from error
        except NotInterpretedError as error:
            return Refusal(str(error).removeprefix("payload: ").partition(ALLOWED)[0])

    def sampled_launches(
        self, program: DeviceProgram, blocks: int, add: Callable[[Any], None]
    ) -> Callable[..., object]:
        from tuner.gpu.run.sampled_launches import SampledLaunches  # loads the simulator

        return SampledLaunches(program, blocks, add).run


RUNTIME = GpuRuntime()
