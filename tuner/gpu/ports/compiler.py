"""Compiles programs for a GPU, from fusions or from launches of kernels, and counts a program's work."""

from collections.abc import Callable, Mapping

from tuner.core.compiled_code import KernelCode
from tuner.core.device_programs import DeviceOptions, DeviceProgram, DeviceWork, LoweringStep, MatmulKernel
from tuner.core.fusions import FusedProgram
from tuner.core.gpu import Chip
from tuner.core.interfaces import Script
from tuner.core.problem import Problem
from tuner.gpu.fusions.program import compile_for_device
from tuner.gpu.lowering.device import give_device_memory, lower_device_program, text_after
from tuner.gpu.lowering.kernels import launch_kernels, reference_kernels
from tuner.gpu.mlir.lowering import drop_code, outline_kernels
from tuner.gpu.streams.async_ops import drop_tokens
from tuner.gpu.target import compiler
from tuner.mlir.bindings import Value, ir
from tuner.mlir.ir.memrefs import memref_bytes
from tuner.mlir.ir.reading import op_of, source_of, walk
from tuner.mlir.programs.payload import ProgramPayload
from tuner.runtime.programs.devices import DeviceCompiler, DeviceTarget

LAUNCH = "gpu.launch_func"
COPY = "gpu.memcpy"
VIEWS = ("memref.reinterpret_cast", "memref.cast", "memref.subview")


class GpuPrograms(DeviceCompiler):
    """The compiler of programs for NVIDIA GPUs."""

    def compile_fusions(
        self,
        program: FusedProgram,
        entry: str,
        target: DeviceTarget,
        script_of: Callable[[Problem], Script | None],
    ) -> DeviceProgram:
        return compile_for_device(program, entry, target, script_of)

    def kernel(self, problem: Problem, script: Script, chip: Chip) -> KernelCode:
        return compiler.GpuCompiler(chip).compile(problem, script).code

    def launch_kernels(
        self, payload: ProgramPayload, scripts: Mapping[Problem, Script], chip: Chip, math: str
    ) -> tuple[MatmulKernel, ...]:
        return launch_kernels(payload, dict(scripts), chip, math)

    def reference_kernels(self, module: ir.Module, left_out: frozenset[str]) -> str:
        return reference_kernels(module, left_out)

    def lower(self, payload: ProgramPayload, target: DeviceTarget) -> DeviceProgram:
        return lower_device_program(
            payload.module,
            payload.entry,
            target.chip,
            target.options,
            target.assemble,
            is_checked=target.is_checked,
        )

    def text_after(
        self, step: LoweringStep, payload: ProgramPayload, chip: Chip, options: DeviceOptions
    ) -> str:
        return text_after(step, payload, chip, options)

    def counted_work(self, payload: ProgramPayload, chip: Chip, options: DeviceOptions) -> DeviceWork | None:
        return counted_work(payload, chip, options)


COMPILER = GpuPrograms()


# Counts the launches and copies of a program from its code, without running it.
#
# Takes a host function on device memory, before its work is put on streams; each ``gpu.launch_func`` and each
# ``gpu.memcpy`` of its only block runs once in a call.


def counted_work(payload: ProgramPayload, chip: Chip, options: DeviceOptions) -> DeviceWork | None:
    """Returns the launches and copied bytes of one call of ``payload``, which this function lowers in place.

    None where only a call shows the work: it is in a loop or a branch, or its size is not static. Raises
    CandidateError where the lowering fails.
    """
    module = payload.module
    function = payload.function
    drop_code(module)
    outline_kernels(module, chip)
    drop_tokens(function)
    give_device_memory(module, function, options)
    block = function.regions[0].blocks[0]
    work = DeviceWork()
    for op in walk(function, LAUNCH, COPY):
        memrefs = [operand.type for operand in op.operands if isinstance(operand.type, ir.MemRefType)]
        if op.block != block or not all(type_.has_static_shape for type_ in memrefs):
            return None
        if op.name == LAUNCH:
            work = work.with_launch()
        else:
            to, from_ = (_is_on_device(operand, options) for operand in op.operands)
            work = work.with_copy(memref_bytes(memrefs[0]), to_device=to, from_device=from_)
    return work


def _is_on_device(memory: Value, options: DeviceOptions) -> bool:
    root = source_of(memory, VIEWS)
    if isinstance(root.owner, ir.Block):
        return options.device_arguments
    return op_of(root, "gpu.alloc") is not None
