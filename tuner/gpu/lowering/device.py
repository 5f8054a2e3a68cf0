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

Operations that upstream's conversions skip silently are rejected with their location.
"""

from dataclasses import dataclass, replace

from tuner.core.compiled_code import Assemble
from tuner.core.device_programs import DEFAULTS, DeviceOptions, DeviceProgram, LoweringStep, ValueType
from tuner.core.errors import CandidateError, Stage
from tuner.core.gpu import Chip
from tuner.gpu.device_memory.coherence import forget_registrations
from tuner.gpu.device_memory.conversion import host_to_device_memory
from tuner.gpu.lowering.explicit_memory import mixes_memory, reject_tensor_maps, without_explicit_memory
from tuner.gpu.lowering.matmul_launches import create_tensor_maps
from tuner.gpu.mlir.lowering import (
    drop_code,
    kernels_to_ptx,
    outline_kernels,
    pass_addresses,
    replace_by_binaries,
    without_debug_sections,
)
from tuner.gpu.streams.async_ops import drop_tokens, wait_for_each
from tuner.gpu.streams.async_streams import use_streams
from tuner.gpu.streams.async_tokens import use_tokens
from tuner.gpu.streams.dependency_graph import erase_launch_order, record_launch_order
from tuner.gpu.streams.gpux import drop_streams, lower_gpux, take_stream_from_caller
from tuner.gpu.streams.gpux_ops import uses_gpux, write_as_gpux
from tuner.mlir.bindings import Op, Type, Value, WalkResult, gpu, ir
from tuner.mlir.cpu.lowering import jit_text
from tuner.mlir.cpu.pipeline import EXPORTED
from tuner.mlir.cpu.stack_memory import bound_stacks
from tuner.mlir.effects.accesses import device_accesses, host_accesses, union
from tuner.mlir.effects.aliases import is_buffer
from tuner.mlir.effects.launches import kernel_of, module_of
from tuner.mlir.effects.memory_effects import KernelEffects
from tuner.mlir.ir.building import create, index, value
from tuner.mlir.ir.memrefs import copy_by_loops, element_bytes, has_zero_offset, is_contiguous
from tuner.mlir.ir.reading import location_of, name_of, ops_in, types_of, walk, walk_ops
from tuner.mlir.passes import run_passes
from tuner.mlir.programs import host_code
from tuner.mlir.programs.entry import arguments_of, results_of
from tuner.mlir.programs.payload import ProgramPayload

ALLOWED = ("llvm.", "gpu.binary", "builtin.module")
LAUNCH = "gpu.launch_func"  # translated to calls in LLVM IR, if its operands have LLVM types
# Remains when something else was not converted; named only where nothing else remains.
CAST = "builtin.unrealized_conversion_cast"
REASONS = {
    "gpu.memcpy": "copies of contiguous memory, with a token",
    "gpu.alloc": "allocations of device memory, with a token",
    "gpu.dealloc": "frees with a token",
    "gpu.memset": "fills of 16 or 32 bits, with a token",
    "memref.copy": "copies that a pass made loops or gpu.memcpy of",
}
CLEAN = "builtin.module(canonicalize,cse)"
# Like the host's pipeline, with gpu-to-llvm in addition; simplified only after that pass.
VECTORS_TO_LOOPS = (
    "builtin.module(convert-nvgpu-to-nvvm,func.func(convert-linalg-to-loops),convert-vector-to-scf,"
    "expand-strided-metadata,lower-affine)"
)
TO_LLVM = (
    "builtin.module(convert-scf-to-cf,convert-vector-to-llvm,arith-expand,convert-math-to-libm,convert-math-to-llvm,"
    "gpu-to-llvm{{use-bare-pointers-for-kernels={bare_pointers}}},"
    "convert-ub-to-llvm,finalize-memref-to-llvm,convert-func-to-llvm,convert-arith-to-llvm,convert-index-to-llvm,"
    "convert-cf-to-llvm,reconcile-unrealized-casts,canonicalize,cse)"
)
BINARY = 3  # gpu.CompilationTarget: a cubin


def restore_stack(module: ir.Module) -> None:
    """Makes each launch of a module in LLVM dialect release the stack memory of its arguments, in place.

    In a loop their allocation would exhaust the stack. The driver copies the arguments before the call
    returns.

        gpu.launch_func @m::@k blocks in (...) threads in (...) : i64 args(...)
      becomes
        %0 = llvm.intr.stacksave : !llvm.ptr
        gpu.launch_func @m::@k blocks in (...) threads in (...) : i64 args(...)
        llvm.intr.stackrestore %0 : !llvm.ptr
    """
    for launch in walk(module, "gpu.launch_func"):
        with launch.location, ir.InsertionPoint(launch):
            stack = value("llvm.intr.stacksave", ir.Type.parse("!llvm.ptr"))
        with launch.location, ir.InsertionPoint.after(launch):
            create("llvm.intr.stackrestore", [], [stack])


def reject_copies_of_views(module: ir.Module) -> None:
    """Raises CandidateError(COMPILE) for device copies and fills of memory with gaps or with an offset.

    ``gpu-to-llvm`` ignores the offset of a view, so it would access the first bytes of the buffer.
    """
    for op in [*walk(module, "gpu.memcpy"), *walk(module, "gpu.memset")]:
        for type_ in [operand.type for operand in op.operands if isinstance(operand.type, ir.MemRefType)]:
            plain = ir.MemRefType.get(type_.shape, type_.element_type, memory_space=type_.memory_space)
            if type_.get_strides_and_offset() != plain.get_strides_and_offset():
                actual = f"found {op.name} of {type_}, allowed contiguous memory without an offset"
                raise CandidateError(Stage.COMPILE, f"host program: {actual} ({location_of(op)})")


def reject_what_was_not_converted(module: ir.Module) -> None:
    """Raises CandidateError(COMPILE) for an operation that no conversion lowered, with its location.

    Allowed are the LLVM dialect, ``gpu.binary``, and launches on LLVM types.
    """
    left: list[Op] = []

    def visit(op: Op) -> WalkResult:
        if not op.name.startswith(ALLOWED) and not _is_translatable(op):
            left.append(op)
        return ir.WalkResult.ADVANCE

    walk_ops(module, visit, is_pre_order=True)
    named = [op for op in left if op.name != CAST] or left
    if named:
        allowed = REASONS.get(named[0].name, "what lowers to LLVM")
        actual = f"found {named[0].name}, allowed {allowed}"
        raise CandidateError(Stage.COMPILE, f"host program: {actual} ({location_of(named[0])})")


def _is_translatable(op: Op) -> bool:
    types = types_of(op.operands)
    is_llvm = [
        isinstance(type_, ir.IntegerType | ir.FloatType) or str(type_).startswith(("!llvm.", "vector<"))
        for type_ in types
    ]
    return op.name == LAUNCH and not op.results and all(is_llvm)


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
    ``assemble`` converts PTX to machine code; None: the program contains PTX. ``is_checked``: the host's
    loops assert that each access is in bounds. Raises CandidateError: BIND for options that a program which
    names its streams (GPUX) cannot have, COMPILE or RESOURCES where the lowering fails.
    """
    functions = {name_of(op): op for op in walk(module, "func.func")}
    if entry not in functions:
        present = ", ".join(sorted(functions)) or "none"
        raise CandidateError(Stage.COMPILE, f"host program: function {entry} is missing, it has {present}")
    function = functions[entry]
    names_streams = uses_gpux(function)
    if names_streams:
        if options.form != "streams":
            raise CandidateError(
                Stage.BIND,
                f"form={options.form!r} cannot be combined with a program that names its streams (GPUX)",
            )
        if options.pinned:
            raise CandidateError(
                Stage.BIND, "pinned: cannot be combined with a program that has its own device memory (GPUX)"
            )
    if names_streams and not drop_streams_if_mixed(function):
        take_stream_from_caller(function)
        arguments = arguments_of(function)
        results = results_of(function)
        slots = lower_gpux(function)
        alignment_bytes = outline_kernels(module, chip)
        written = _written(module, function)[: len(arguments)]
        host = _HostFunction(arguments, results, written, slots, alignment_bytes)
    else:
        host = _on_planned_streams(module, function, chip, options)
    text = _to_llvm(module, function, chip, host.alignment_bytes, assemble, is_checked=is_checked)
    return DeviceProgram(
        text, entry, host.arguments, host.results, host.written, options.device_arguments, host.stream_slots
    )


def _on_planned_streams(module: ir.Module, function: Op, chip: Chip, options: DeviceOptions) -> _HostFunction:
    arguments = arguments_of(function)
    results = results_of(function)
    alignment_bytes = outline_kernels(module, chip)
    record_launch_order(module, function)
    drop_tokens(function)
    written = _written(module, function)
    give_device_memory(module, function, options)
    slots = issue_device_work(module, function, options)
    return _HostFunction(arguments, results, written, slots, alignment_bytes)


def names_device_memory(function: Op) -> bool:
    """Returns whether a host function allocates device memory, or names its streams."""
    return bool(walk(function, "gpu.alloc")) or uses_gpux(function)


def drop_streams_if_mixed(function: Op) -> bool:
    """Makes a GPUX program that mixes host and device memory synchronous, in place; returns whether it did.

    Copies will be inserted in such a program, and the program's streams cannot order them.
    """
    is_mixed = mixes_memory(function)
    if is_mixed:
        drop_streams(function)
    return is_mixed


def give_device_memory(module: ir.Module, function: Op, options: DeviceOptions) -> None:
    """Makes a host function's kernels use device memory, in place: inserts device buffers and copies.

    A function that already uses device memory only is left as it is. One that mixes it with host memory is
    first rewritten to host memory. In all cases tensor maps are created and the module is simplified. Raises
    CandidateError(COMPILE) for a program for which no buffers can be inserted.
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
    """Makes a function's device work asynchronous, or the host wait for it, in place, by ``options.form``.

    The forms are "streams", "tokens" and "sync". Returns the number of streams that the function takes as its
    last arguments: 0 for forms other than "streams".
    """
    effects = KernelEffects(module)
    slots = 0
    if options.form == "streams":
        slots = use_streams(function, effects, options.max_streams)
    elif options.form == "tokens":
        use_tokens(function, effects, options.max_streams)
    else:
        wait_for_each(function)
    erase_launch_order(function)
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
    ready = replace_by_binaries(module)
    kernels = walk(module, "gpu.func")
    types: list[Type] = []
    for kernel in kernels:
        types += types_of(kernel.regions[0].blocks[0].arguments)
    # the address alone describes each argument, so that kernels can take bare pointers
    bare = not any(
        isinstance(type_, ir.MemRefType | ir.UnrankedMemRefType) and "?" in str(type_) for type_ in types
    )
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
        host_code.assert_bounds(module)
    host_code.lower_missing_math(module)
    run_passes(module, VECTORS_TO_LOOPS)
    bound_stacks(module)
    run_passes(module, TO_LLVM.format(bare_pointers=str(bare).lower()))
    reject_what_was_not_converted(module)
    restore_stack(module)
    return host_code.with_prefixed_c_functions(jit_text(module))


def _written(module: ir.Module, function: Op) -> tuple[bool, ...]:
    effects = KernelEffects(module)
    block = function.regions[0].blocks[0]
    ops = ops_in(block)
    accesses = union([*(device_accesses(op, effects) for op in ops), *map(host_accesses, ops)])
    written = {part.root for part in accesses.writes}
    return tuple(
        is_buffer(argument.type) and (accesses.is_unknown or argument in written)
        for argument in block.arguments
    )


def _finish_binary(module: ir.Module, binary: Op, assemble: Assemble | None) -> None:
    """Replaces the code of a ``gpu.binary`` by its PTX, or by what ``assemble`` makes of the PTX, in place.

    Upstream's properties that record compile time are dropped.
    """
    compiled = gpu.ObjectAttr(ir.ArrayAttr(binary.attributes["objects"])[0])
    launched = [launch for launch in walk(module, "gpu.launch_func") if module_of(launch) == name_of(binary)]
    whole = bytes(compiled.object)
    ptx = without_debug_sections(whole.rstrip(b"\0").decode())
    if assemble is None:
        code = ptx.encode() + b"\0" * whole.endswith(b"\0")
        format_ = compiled.format
    else:
        code = assemble(ptx, tuple(sorted(set(map(kernel_of, launched)))))
        format_ = BINARY
    kept = gpu.ObjectAttr.get(compiled.target, format_, code, kernels=compiled.kernels)
    binary.attributes["objects"] = ir.ArrayAttr.get([kept])


def text_after(step: LoweringStep, payload: ProgramPayload, chip: Chip, options: DeviceOptions) -> str:
    """Lowers a payload in place up to ``step``; returns the text of the module: PTX for ``ptx``, else MLIR.

    Raises CandidateError: BIND for the step ``device-memory`` of a program that names its streams (GPUX),
    unless the program mixes host and device memory; COMPILE for ``ptx`` without kernels; and where the
    lowering fails.
    """
    module = payload.module
    function = payload.function
    if step in ("llvm", "ptx"):
        program = lower_device_program(module, payload.entry, chip, options)
        return program.llvm if step == "llvm" else _ptx(module)
    drop_code(module)
    if uses_gpux(function) and not drop_streams_if_mixed(function):
        if step == "device-memory":
            allowed = "async, streams, gpux, llvm, ptx"
            raise CandidateError(
                Stage.BIND, f"to: found {step} for a program that names its streams, allowed {allowed}"
            )
        if step == "streams":
            lower_gpux(function)
        elif step == "async":
            drop_streams(function)
        outline_kernels(module, chip)
        if step == "async":
            issue_device_work(module, function, DeviceOptions(form="tokens"))
    else:
        outline_kernels(module, chip)
        if step in ("async", "streams"):
            record_launch_order(module, function)
        drop_tokens(function)
        give_device_memory(module, function, options)
        if step == "gpux":
            use_streams(function, KernelEffects(module), limit=1)
            write_as_gpux(function)
        elif step != "device-memory":
            form = replace(options, form="tokens") if step == "async" else options
            issue_device_work(module, function, form)
    return str(module)


def _ptx(module: ir.Module) -> str:
    binaries = walk(module, "gpu.binary")
    if not binaries:
        raise CandidateError(Stage.COMPILE, "payload: no kernel: nothing in it runs on a device")
    codes = [gpu.ObjectAttr(ir.ArrayAttr(binary.attributes["objects"])[0]).object for binary in binaries]
    return "\n".join(bytes(code).rstrip(b"\0").decode() for code in codes)


def move_pointers_of_copies(module: ir.Module) -> int:
    """Makes device copies and fills of contiguous views start at the view's first element, in place.

    Right before ``gpu-to-llvm``, which drops the offset. Returns the number of replaced operands.

        gpu.memcpy %a, %view : memref<4xf32>, memref<4xf32, strided<[1], offset: 4>>
      becomes, at its end
        %5 = builtin.unrealized_conversion_cast %4 : !llvm.struct<(ptr, ptr, i64, ...)> to memref<4xf32>
        gpu.memcpy %a, %5 : memref<4xf32>, memref<4xf32>
    """
    moved = 0
    for op in [*walk(module, "gpu.memcpy"), *walk(module, "gpu.memset")]:
        for operand_index, operand in enumerate(op.operands):
            type_ = operand.type
            if is_buffer(type_) and is_contiguous(type_) and not has_zero_offset(type_):
                with op.location, ir.InsertionPoint(op):
                    op.operands[operand_index] = _moved(operand)
                moved += 1
    return moved


def _moved(buffer: Value) -> Value:
    type_ = buffer.type
    number = ir.IndexType.get()
    base = ir.MemRefType.get([], type_.element_type, memory_space=type_.memory_space)
    results = [base, *[number] * (1 + 2 * type_.rank)]
    _, offset, *rest = create("memref.extract_strided_metadata", results, [buffer]).results
    start = value("memref.extract_aligned_pointer_as_index", number, buffer)
    distance = value("arith.muli", number, offset, index(element_bytes(type_.element_type)))
    first = _i64(value("arith.addi", number, start, distance))
    address = value("llvm.inttoptr", ir.Type.parse("!llvm.ptr"), first)
    plain = ir.MemRefType.get(type_.shape, type_.element_type, memory_space=type_.memory_space)
    described = _descriptor(address, rest[: type_.rank])
    return value("builtin.unrealized_conversion_cast", plain, described)


def _descriptor(address: Value, sizes: list[Value]) -> Value:
    array = f"array<{len(sizes)} x i64>"
    kind = f"!llvm.struct<(ptr, ptr, i64{f', {array}, {array}' if sizes else ''})>"
    described = value("llvm.mlir.poison", ir.Type.parse(kind))
    fields = [([0], address), ([1], address), ([2], _i64(index(0)))]
    stride = index(1)
    for number in reversed(range(len(sizes))):
        fields += [([3, number], _i64(sizes[number])), ([4, number], _i64(stride))]
        stride = value("arith.muli", stride.type, stride, sizes[number])
    for path, field in fields:
        position = ir.DenseI64ArrayAttr.get(path)
        described = value("llvm.insertvalue", described.type, described, field, position=position)
    return described


def _i64(number: Value) -> Value:
    return value("arith.index_cast", ir.IntegerType.get_signless(64), number)
