"""The device's operations in a program: GPUX, memory of launches, and all of it as code of the processor."""

from tuner.gpu.interpreter.kernels_on_host import OUTLINE, run_kernels_on_host
from tuner.gpu.lowering.device import names_device_memory
from tuner.gpu.mlir.device_functions import inline_device_functions
from tuner.gpu.mlir.kernel_memory import declare_launch_memory
from tuner.gpu.mlir.modules import merge_gpu_modules
from tuner.gpu.streams.async_ops import drop_tokens
from tuner.gpu.streams.gpux import drop_streams, take_stream_from_caller
from tuner.gpu.streams.gpux_ops import inline_stream_functions, parse_with_gpux
from tuner.mlir.bindings import Op, ir
from tuner.mlir.passes import run_passes
from tuner.mlir.programs.payload import ProgramPayload
from tuner.runtime.programs.devices import DeviceOperations


class GpuOperations(DeviceOperations):
    """Operations of MLIR's dialects for GPUs, and of GPUX."""

    def parse(self, text: str, name: str) -> ir.Module:
        return parse_with_gpux(text, name)

    def declare_memory(self, module: ir.Module) -> None:
        inline_device_functions(module)
        declare_launch_memory(module)

    def take_stream(self, function: Op) -> None:
        take_stream_from_caller(function)

    def inline_stream_functions(self, module: ir.Module) -> None:
        inline_stream_functions(module)

    def names_device_memory(self, function: Op) -> bool:
        return names_device_memory(function)

    def to_host(self, payload: ProgramPayload) -> str:
        drop_streams(payload.function)
        run_passes(payload.module, OUTLINE)
        drop_tokens(payload.function)
        merge_gpu_modules(payload.module)  # kernel names are then unique
        return run_kernels_on_host(payload.module)


OPERATIONS = GpuOperations()
