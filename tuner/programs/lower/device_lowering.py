"""Lowers a host function with kernels to LLVM dialect that allocates, copies and launches on the device.

Takes a module with one function on memrefs, whose work is ``gpu.launch`` or ``gpu.launch_func``; produces
LLVM dialect that calls the ``mgpu*`` functions, with the kernels as ``gpu.binary``. Four stages:

1. Read: the signature of the source function, and which arguments are written.
2. Outline: kernels become ``gpu.func`` while the host code is still on memrefs, so that their effects can be
   read.
3. Make asynchronous: a function that names its streams (GPUX) keeps them. Any other function loses its
   tokens, gets device memory unless it allocates device memory itself (``gpu.alloc``), and gets the streams
   or tokens of a plan. Explicit device memory that is mixed with host memory (``explicit_memory.py``) is
   placed again, on planned streams.
4. To LLVM: kernels to PTX or machine code, then the host code. Nothing is simplified between the asynchronous
   form and ``gpu-to-llvm``: upstream folds a ``gpu.wait async`` of one token, which is a fork, to that token.

Operations that upstream's conversions skip silently are rejected with their location (``unconverted.py``).
"""

from dataclasses import dataclass

from tuner.core.chips import Chip
from tuner.core.device_program import Assemble, DeviceProgram, ValueType
from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Op, Type, Value, gpu, ir
from tuner.mlir.cpu.lowering import jit_text
from tuner.mlir.cpu.pipeline import EXPORTED
from tuner.mlir.effects.address_flow import is_buffer
from tuner.mlir.effects.buffer_accesses import device_accesses, host_accesses, union
from tuner.mlir.effects.kernel_effects import KernelEffects
from tuner.mlir.gpu.lowering import kernels_to_ptx, outline_kernels, without_debug_sections
from tuner.mlir.gpu.ready_kernels import pass_addresses, use_code_of_ready_kernels
from tuner.mlir.pipeline import run_passes
from tuner.mlir.rewrite.launch_operands import kernel_of, module_of
from tuner.mlir.rewrite.memref_copies import copy_by_loops
from tuner.mlir.rewrite.symbols import name_of
from tuner.mlir.rewrite.walking import walk
from tuner.programs.lower.bounds_assertions import assert_bounds
from tuner.programs.lower.copies_with_offset import move_pointers_of_copies
from tuner.programs.lower.device_memory.host_to_device_memory import host_to_device_memory
from tuner.programs.lower.device_memory.pinned_memory import forget_registrations
from tuner.programs.lower.device_options import DEFAULTS, DeviceOptions
from tuner.programs.lower.explicit_memory import mixes_memory, reject_tensor_maps, without_explicit_memory
from tuner.programs.lower.launch_stack import restore_stack
from tuner.programs.lower.on_host.drop_streams import drop_streams
from tuner.programs.lower.on_host.libm_names import with_bundled_math
from tuner.programs.lower.on_host.math_lowering import lower_missing_math
from tuner.programs.lower.signature import arguments_of, results_of
from tuner.programs.lower.streams.async_streams import use_streams
from tuner.programs.lower.streams.async_tokens import use_tokens
from tuner.programs.lower.streams.concurrent_launches import forget_concurrency, note_concurrency
from tuner.programs.lower.streams.drop_tokens import drop_tokens
from tuner.programs.lower.streams.gpux import lower_gpux, take_stream_from_caller
from tuner.programs.lower.streams.gpux_ops import uses_gpux
from tuner.programs.lower.streams.synchronous import wait_for_each
from tuner.programs.lower.tensor_map_arguments import create_tensor_maps
from tuner.programs.lower.unconverted import reject_copies_of_views, reject_what_was_not_converted

CLEAN = "builtin.module(canonicalize,cse)"
# Like the host's pipeline, with gpu-to-llvm in addition; simplified only after that pass.
TO_LLVM = (
    "builtin.module(convert-nvgpu-to-nvvm,func.func(convert-linalg-to-loops),convert-vector-to-scf,expand-strided-metadata,lower-affine,"
    "convert-scf-to-cf,convert-vector-to-llvm,arith-expand,convert-math-to-libm,convert-math-to-llvm,"
    "gpu-to-llvm{{use-bare-pointers-for-kernels={bare_pointers}}},"
    "convert-ub-to-llvm,finalize-memref-to-llvm,convert-func-to-llvm,convert-arith-to-llvm,convert-index-to-llvm,"
    "convert-cf-to-llvm,reconcile-unrealized-casts,canonicalize,cse)"
)
BINARY = 3  # gpu.CompilationTarget: a cubin


@dataclass(frozen=True)
class _HostFunction:
    """The signature of a host function, its written arguments, its stream count, its kernels' alignment."""

    arguments: tuple[ValueType, ...]
    results: tuple[ValueType, ...]
    written: tuple[bool, ...]  # per argument
    stream_slots: int  # number of streams that the function takes as its last arguments
    alignment_bytes: int  # of the kernels' dynamic shared memory


def lower_device_program(
    module: ir.Module,
    entry: str,
    chip: Chip,
    options: DeviceOptions = DEFAULTS,
    assemble: Assemble | None = None,
    *,
    is_checked: bool = False,
) -> DeviceProgram:
    """Lowers a host function with GPU kernels to LLVM dialect that allocates, copies and launches; in place.

    Functions other than ``entry`` must be inlined. Returns the program: text of the module and its signature.

    Args:
        entry: name of the function to run.
        chip: the GPU architecture.
        options: how device work is issued.
        assemble: converts PTX to machine code; None: the program contains PTX.
        is_checked: whether the host's loops assert that each access is in bounds.

    Raises CandidateError: BIND for options that a program which names its streams (GPUX) cannot have, COMPILE
    or RESOURCES where the lowering fails.
    """
    function = _function(module, entry)
    names_streams = uses_gpux(function)
    if names_streams:
        _require_form_of_streams(options)
    if names_streams and not drop_streams_if_mixed(function):
        host = _on_its_own_streams(module, function, chip)
    else:
        host = _on_planned_streams(module, function, chip, options)
    text = _to_llvm(module, function, chip, host.alignment_bytes, assemble, is_checked=is_checked)
    return DeviceProgram(
        text, entry, host.arguments, host.results, host.written, options.device_arguments, host.stream_slots
    )


def _on_its_own_streams(module: ir.Module, function: Op, chip: Chip) -> _HostFunction:
    take_stream_from_caller(function)
    arguments, results = arguments_of(function), results_of(function)
    slots = lower_gpux(function)
    alignment_bytes = outline_kernels(module, chip)
    written = _written(module, function)[: len(arguments)]
    return _HostFunction(arguments, results, written, slots, alignment_bytes)


def _on_planned_streams(module: ir.Module, function: Op, chip: Chip, options: DeviceOptions) -> _HostFunction:
    arguments, results = arguments_of(function), results_of(function)
    alignment_bytes = outline_kernels(module, chip)
    note_concurrency(module, function)
    drop_tokens(function)
    written = _written(module, function)
    give_device_memory(module, function, options)
    slots = issue_device_work(module, function, options)
    return _HostFunction(arguments, results, written, slots, alignment_bytes)


def drop_streams_if_mixed(function: Op) -> bool:
    """Makes a GPUX program synchronous, in place, if it mixes host memory and device memory.

    That is, if its kernels take host memory, or its host code accesses device memory; its streams cannot
    order the copies that it needs. Returns whether it does. GPUX is Intel's MLIR dialect of GPU work on named
    streams.
    """
    is_mixed = mixes_memory(function)
    if is_mixed:
        drop_streams(function)
    return is_mixed


def _require_form_of_streams(options: DeviceOptions) -> None:
    """Raises CandidateError(BIND) for options that a program which names its streams cannot have."""
    if options.form != "streams":
        raise CandidateError(
            Stage.BIND,
            f"form={options.form!r} cannot be combined with a program that names its streams (GPUX)",
        )
    if options.pinned:
        raise CandidateError(
            Stage.BIND, "pinned: cannot be combined with a program that has its own device memory (GPUX)"
        )


def give_device_memory(module: ir.Module, function: Op, options: DeviceOptions) -> None:
    """Inserts device buffers and copies, in place, so that a host function's kernels take device memory.

    A function that allocates device memory itself, and does not mix it with host memory, is left as it is.
    Then creates the tensor maps of launches and simplifies the module. Raises CandidateError(COMPILE).
    """
    is_explicit = bool(walk(function, "gpu.alloc"))
    if not is_explicit or mixes_memory(function, device_arguments=options.device_arguments):
        reject_tensor_maps(function)
        forget_registrations(function)
        without_explicit_memory(function)
        host_to_device_memory(module, options)
    create_tensor_maps(module)
    run_passes(module, CLEAN)


def issue_device_work(module: ir.Module, function: Op, options: DeviceOptions) -> int:
    """Puts a function's device work on streams, in place, in ``options.form``: streams, tokens or sync.

    In the form sync the host waits for each operation. Returns how many streams the function takes as its
    last arguments: 0 in the forms tokens and sync.
    """
    effects, slots = KernelEffects(module), 0
    if options.form == "streams":
        slots = use_streams(function, effects, options.max_streams)
    elif options.form == "tokens":
        use_tokens(function, effects, options.max_streams)
    else:
        wait_for_each(function)
    forget_concurrency(function)
    return slots


def _to_llvm(
    module: ir.Module,
    function: Op,
    chip: Chip,
    alignment_bytes: int,
    assemble: Assemble | None,
    *,
    is_checked: bool,
) -> str:
    ready = use_code_of_ready_kernels(module)
    kernels = walk(module, "gpu.func")
    bare = all(_is_static(argument.type) for kernel in kernels for argument in _arguments(kernel))
    function.attributes[EXPORTED] = ir.UnitAttr.get()
    if kernels:
        kernels_to_ptx(module, chip, alignment_bytes, bare_pointers=bare, has_lines=assemble is None)
    for binary in walk(module, "gpu.binary"):
        _finish_binary(module, binary, assemble)
    if not bare:
        pass_addresses(module, ready)
    copy_by_loops(function)
    move_pointers_of_copies(module)
    reject_copies_of_views(module)
    if is_checked:
        assert_bounds(module)
    lower_missing_math(module)
    run_passes(module, TO_LLVM.format(bare_pointers=str(bare).lower()))
    reject_what_was_not_converted(module)
    restore_stack(module)
    return with_bundled_math(jit_text(module))


def _function(module: ir.Module, entry: str) -> Op:
    named = {name_of(op): op.operation for op in module.body.operations if op.operation.name == "func.func"}
    if entry not in named:
        found = ", ".join(sorted(named)) or "none"
        raise CandidateError(Stage.COMPILE, f"host program: function {entry} is missing, it has {found}")
    return named[entry]


def _written(module: ir.Module, function: Op) -> tuple[bool, ...]:
    """Returns for each argument whether the function may write it."""
    effects = KernelEffects(module)
    block = function.regions[0].blocks[0]
    ops = [op.operation for op in block.operations]
    accesses = union([*(device_accesses(op, effects) for op in ops), *map(host_accesses, ops)])
    written = {part.root for part in accesses.writes}
    return tuple(
        is_buffer(argument.type) and (accesses.is_unknown or argument in written)
        for argument in block.arguments
    )


def _finish_binary(module: ir.Module, binary: Op, assemble: Assemble | None) -> None:
    """Stores the code in a binary of kernels, without upstream's properties that record compile time."""
    made = gpu.ObjectAttr(ir.ArrayAttr(binary.attributes["objects"])[0])
    launched = [launch for launch in walk(module, "gpu.launch_func") if module_of(launch) == name_of(binary)]
    names = tuple(sorted(set(map(kernel_of, launched))))
    whole = bytes(made.object)
    ptx = without_debug_sections(whole.rstrip(b"\0").decode())
    text = ptx.encode() + b"\0" * whole.endswith(b"\0")
    code, kind = (text, made.format) if assemble is None else (assemble(ptx, names), BINARY)
    kept = gpu.ObjectAttr.get(made.target, kind, code, kernels=made.kernels)
    binary.attributes["objects"] = ir.ArrayAttr.get([kept])


def _arguments(function: Op) -> list[Value]:
    return list(function.regions[0].blocks[0].arguments)


def _is_static(kind: Type) -> bool:
    """Returns whether the address alone describes a value, so that a kernel can take a bare pointer."""
    return not isinstance(kind, ir.MemRefType | ir.UnrankedMemRefType) or "?" not in str(kind)
