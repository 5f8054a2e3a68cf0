"""From a host function around ``gpu.launch`` to LLVM dialect that allocates, copies and launches by itself.

The order matters. Kernels are outlined while the host still is on memrefs, so that their effects can be read.
Nothing is simplified between the asynchronous form and ``gpu-to-llvm``: upstream takes a ``gpu.wait async``
of one token, which is a fork, for that token.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

from tuner.chips import Chip
from tuner.device_program import DeviceProgram
from tuner.errors import CandidateError, Stage, UsageError
from tuner.mlir.bindings import gpu, ir
from tuner.mlir.gpu_lowering import kernels_to_ptx, outline_kernels
from tuner.mlir.host_lowering import with_own_math
from tuner.mlir.lowering import EXPORTED, without_builtins
from tuner.mlir.ops.dialect import walk
from tuner.mlir.passes.async_streams import use_streams
from tuner.mlir.passes.async_tokens import use_tokens
from tuner.mlir.passes.buffer_accesses import device_accesses, host_accesses, union
from tuner.mlir.passes.buffer_roots import is_buffer
from tuner.mlir.passes.given_tokens import drop_tokens
from tuner.mlir.passes.gpux import lower_gpux, take_stream_from_caller, uses_gpux
from tuner.mlir.passes.host_math import lower_missing_math
from tuner.mlir.passes.host_to_device_memory import HostMemoryOptions, host_to_device_memory
from tuner.mlir.passes.kernel_effects import KernelEffects
from tuner.mlir.passes.launch_operands import kernel_of
from tuner.mlir.passes.launch_stack import give_stack_back
from tuner.mlir.passes.pinned_memory import forget_registrations
from tuner.mlir.passes.synchronous import wait_for_each
from tuner.mlir.passes.view_copies import copy_by_loops
from tuner.mlir.program_payload import run_passes
from tuner.mlir.program_signature import arguments_of, results_of
from tuner.mlir.symbols import name_of
from tuner.mlir.unconverted import reject_copies_of_views, reject_what_was_not_converted

Form = Literal["streams", "tokens", "sync"]
Assemble = Callable[[str, tuple[str, ...]], bytes]  # PTX, names of its kernels -> cubin
# CUDA gives each device 8 connections to the host; streams beyond them share one. CUDA programming guide,
# CUDA_DEVICE_MAX_CONNECTIONS.
MAX_STREAMS = 8
CLEAN = "builtin.module(canonicalize,cse)"
# Like the host's own pipeline, but for gpu-to-llvm; simplified only behind it.
TO_LLVM = (
    "builtin.module(func.func(convert-linalg-to-loops),convert-vector-to-scf,expand-strided-metadata,lower-affine,"
    "convert-scf-to-cf,convert-vector-to-llvm,arith-expand,convert-math-to-libm,convert-math-to-llvm,"
    "gpu-to-llvm{{use-bare-pointers-for-kernels={bare_pointers}}},"
    "convert-ub-to-llvm,finalize-memref-to-llvm,convert-func-to-llvm,convert-arith-to-llvm,convert-index-to-llvm,"
    "convert-cf-to-llvm,reconcile-unrealized-casts,canonicalize,cse)"
)
BINARY = 3  # gpu.CompilationTarget: a cubin


@dataclass(frozen=True)
class DeviceOptions:
    """How a host program uses the device."""

    form: Form = "streams"
    max_streams: int = MAX_STREAMS
    device_arguments: bool = False  # buffers of the arguments are device memory already
    pinned: bool = False  # host memory that is copied is page-locked

    def __post_init__(self) -> None:
        """Raises UsageError for an unknown form, and for no stream at all."""
        if self.form not in get_args(Form):
            raise UsageError(f"form: found {self.form!r}, allowed {', '.join(get_args(Form))}")
        if self.max_streams < 1:
            raise UsageError(f"max_streams: found {self.max_streams}, allowed 1 and more")


DEFAULTS = DeviceOptions()


def lower_device_program(
    module: ir.Module,
    entry: str,
    chip: Chip,
    options: DeviceOptions = DEFAULTS,
    assemble: Assemble | None = None,
) -> DeviceProgram:
    """Lowers in place; other functions must be inlined. Without ``assemble`` the program holds PTX.

    A function that allocates device memory (``gpu.alloc``) or names its streams (``gpux``) keeps that.
    Raises CandidateError(COMPILE or RESOURCES).
    """
    function = _function(module, entry)
    has_streams = uses_gpux(function)
    if has_streams:
        take_stream_from_caller(function)
    arguments, results = arguments_of(function), results_of(function)
    slots = lower_gpux(function) if has_streams else 0
    alignment_bytes = outline_kernels(module, chip)
    for kernel in walk(module, "gpu.func"):
        copy_by_loops(kernel)  # a thread's own
    if not has_streams:
        drop_tokens(function)
    bare = all(
        _is_static(argument.type) for each in walk(module, "gpu.func") for argument in _arguments(each)
    )
    written = _written(function, KernelEffects(module))[: len(arguments)]
    if not has_streams:
        slots = _make_asynchronous(module, function, options)
    function.attributes[EXPORTED] = ir.UnitAttr.get()
    if walk(module, "gpu.func"):
        ptx = kernels_to_ptx(module, chip, alignment_bytes, bare_pointers=bare)
        _finish_binary(module, ptx, assemble)
    copy_by_loops(function)
    reject_copies_of_views(module)
    lower_missing_math(module)
    run_passes(module, TO_LLVM.format(bare_pointers=str(bare).lower()))
    reject_what_was_not_converted(module)
    give_stack_back(module)
    text = with_own_math(without_builtins(module))
    return DeviceProgram(text, entry, arguments, results, written, options.device_arguments, slots)


def _make_asynchronous(module: ir.Module, function: Any, options: DeviceOptions) -> int:
    """Returns how many streams the function takes."""
    if not walk(function, "gpu.alloc"):
        forget_registrations(function)
        host_to_device_memory(module, HostMemoryOptions(options.device_arguments, options.pinned))
    run_passes(module, CLEAN)
    effects = KernelEffects(module)
    if options.form == "streams":
        return use_streams(function, effects, options.max_streams)
    if options.form == "tokens":
        use_tokens(function, effects, options.max_streams)
    else:
        wait_for_each(function)
    return 0


def _function(module: ir.Module, entry: str) -> Any:
    named = {name_of(op): op.operation for op in module.body.operations if op.operation.name == "func.func"}
    if entry not in named:
        found = ", ".join(sorted(named)) or "none"
        raise CandidateError(
            Stage.COMPILE, f"host program: found functions {found}, allowed one named {entry}"
        )
    return named[entry]


def _written(function: Any, effects: KernelEffects) -> tuple[bool, ...]:
    """Tells of each argument whether the function may change it."""
    block = function.regions[0].blocks[0]
    ops = [op.operation for op in block.operations]
    accesses = union([*(device_accesses(op, effects) for op in ops), *map(host_accesses, ops)])
    written = {part.root for part in accesses.writes}
    return tuple(
        is_buffer(argument.type) and (accesses.is_unknown or argument in written)
        for argument in block.arguments
    )


def _finish_binary(module: ir.Module, ptx: str, assemble: Assemble | None) -> None:
    """Keeps of the kernels' binary what is the same each time, which the time to make it is not."""
    for binary in walk(module, "gpu.binary"):
        made = gpu.ObjectAttr(ir.ArrayAttr(binary.attributes["objects"])[0])
        names = tuple(sorted({kernel_of(launch) for launch in walk(module, "gpu.launch_func")}))
        code, kind = (made.object, made.format) if assemble is None else (assemble(ptx, names), BINARY)
        kept = gpu.ObjectAttr.get(made.target, kind, code, kernels=made.kernels)
        binary.attributes["objects"] = ir.ArrayAttr.get([kept])


def _arguments(function: Any) -> list[Any]:
    return list(function.regions[0].blocks[0].arguments)


def _is_static(kind: Any) -> bool:
    """Tells whether an address says all about a memref: then a kernel can take that alone."""
    return not isinstance(kind, ir.MemRefType | ir.UnrankedMemRefType) or "?" not in str(kind)
