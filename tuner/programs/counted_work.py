"""Counts the launches and copies of a program from its code, without running it.

Takes a host function on device memory, before its work is put on streams; each ``gpu.launch_func`` and each
``gpu.memcpy`` of its only block runs once in a call.
"""

from tuner.core.chips import Chip
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.gpu.lowering import outline_kernels
from tuner.mlir.gpu.ready_kernels import drop_code
from tuner.mlir.rewrite.definitions import op_of, source_of
from tuner.mlir.rewrite.type_sizes import memref_bytes
from tuner.mlir.rewrite.walking import walk
from tuner.programs.lower.device_lowering import give_device_memory
from tuner.programs.lower.device_options import DeviceOptions
from tuner.programs.lower.read_program import ProgramPayload
from tuner.programs.lower.streams.drop_tokens import drop_tokens
from tuner.programs.run.device_work import DeviceWork

LAUNCH, COPY = "gpu.launch_func", "gpu.memcpy"
VIEWS = ("memref.reinterpret_cast", "memref.cast", "memref.subview")


def counted_work(payload: ProgramPayload, chip: Chip, options: DeviceOptions) -> DeviceWork | None:
    """Returns the launches and copied bytes of one call of a program; lowers the program in place.

    Returns None where a launch or a copy is in a loop or a branch, or a size is not static: only a call
    shows how often it is done, or how much it copies. ``payload`` has launches, as ``launch_kernels`` leaves
    it. Raises CandidateError where the lowering fails.
    """
    module, function = payload.module, payload.function
    drop_code(module)
    outline_kernels(module, chip)
    drop_tokens(function)
    give_device_memory(module, function, options)
    block = function.regions[0].blocks[0]
    work = DeviceWork()
    for op in walk(function, LAUNCH, COPY):
        if op.block != block or not all(_is_static(each) for each in op.operands):
            return None
        work = work.with_launch() if op.name == LAUNCH else _with_copy(work, op, options)
    return work


def _with_copy(work: DeviceWork, op: Op, options: DeviceOptions) -> DeviceWork:
    target, source = op.operands
    return work.with_copy(
        memref_bytes(target.type),
        to_device=_is_on_device(target, options),
        from_device=_is_on_device(source, options),
    )


def _is_on_device(memory: Value, options: DeviceOptions) -> bool:
    root = source_of(memory, VIEWS)
    if isinstance(root.owner, ir.Block):
        return options.device_arguments
    return op_of(root, "gpu.alloc") is not None


def _is_static(operand: Value) -> bool:
    return not isinstance(operand.type, ir.MemRefType) or operand.type.has_static_shape
