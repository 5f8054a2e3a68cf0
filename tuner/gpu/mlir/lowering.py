"""Lowers a module in which a script created ``gpu.launch`` ops to PTX and the sequence of its launches.

    gpu.launch in host functions
      -> outline_kernels: gpu.func in one gpu.module; shared, private memory and composed ops expanded
      -> read_launches: the host code, which is not compiled
      -> kernels_to_ptx: math as formulas, LLVM dialect, NVVM, checks, PTX text by LLVM

Whole programs with tuned kernels inside (``tuner.models``) use its parts: ``store_objects``,
``replace_by_binaries``, ``drop_code`` and ``pass_addresses``. Passes in Python are in the other modules of
this package; the textual pipelines between them are below.
"""

from dataclasses import dataclass

from tuner.core.compiled_code import KernelBuffer, KernelCode
from tuner.core.errors import CandidateError, Stage
from tuner.core.gpu import CHIPS, Chip
from tuner.gpu.mlir import batches, kernel_memory, kernel_passes, modules, tensor_maps
from tuner.gpu.mlir.fragments import lower_fragment_elementwise
from tuner.gpu.mlir.kernel_copies import expand_copies
from tuner.gpu.mlir.lane_moves import expand_lane_moves, widen_narrow_shuffles
from tuner.gpu.mlir.launch_sequence import LaunchSequence, read_launches
from tuner.gpu.mlir.private_memory import use_private_memory
from tuner.gpu.mlir.reductions import expand_reductions
from tuner.gpu.mlir.shared_memory import (
    make_shared_memory_external,
    use_dynamic_shared_globals,
    use_dynamic_shared_memory,
)
from tuner.gpu.mlir.thread_ids import expand_warp_ids
from tuner.mlir.bindings import Op, WalkResult, gpu, ir, ptx_bindings
from tuner.mlir.effects.launches import ARGUMENTS, SEGMENTS, module_of
from tuner.mlir.ir.building import create, value
from tuner.mlir.ir.memory_spaces import name_memory_spaces
from tuner.mlir.ir.reading import callee_of, name_of, unsupported, walk, walk_ops
from tuner.mlir.math.lowering import lower_math
from tuner.mlir.passes import reached, run_passes, run_pipeline
from tuner.mlir.transform import first_diagnostic

# The sink pass runs before outlining: without it constants become kernel parameters.
SINK = "builtin.module(canonicalize,cse,gpu-launch-sink-index-computations)"
OUTLINE = "builtin.module(gpu-kernel-outlining)"
CLEAN = "builtin.module(canonicalize,cse)"
# Moves allocations out of loops but not their deallocations: run only if there are no deallocations.
HOIST = "builtin.module(func.func(buffer-loop-hoisting))"
# With bare pointers a kernel takes addresses; sizes and strides are static. Loop-invariant code moves while
# there are still loops. A 32-bit index would leave casts between index types.
TO_LLVM = (
    "builtin.module(nvvm-attach-target{{chip={chip} features={features} O=3}},"
    "gpu.module(canonicalize,cse,fold-memref-alias-ops,convert-vector-to-scf,expand-strided-metadata,lower-affine,"
    "convert-nvgpu-to-nvvm,loop-invariant-code-motion,canonicalize,cse,convert-scf-to-cf,"
    "convert-vector-to-llvm{{use-vector-alignment=true}},convert-math-to-llvm))"
)
TO_NVVM = (
    "builtin.module(gpu.module(convert-gpu-to-nvvm{{use-bare-ptr-memref-call-conv={bare_pointers}}},"
    "canonicalize,cse,reconcile-unrealized-casts))"
)
# Ops without LLVM intrinsics (asynchronous barriers, wgmma) become inline PTX, which LLVM does not check
# against the chip.
TO_INLINE_PTX = "builtin.module(gpu.module(convert-nvvm-to-llvm,reconcile-unrealized-casts))"
TO_PTX = "builtin.module(gpu-module-to-binary{format=isa})"
TO_PTX_WITH_LINES = "builtin.module(ensure-debug-info-scope-on-llvm-func,gpu-module-to-binary{format=isa})"
TIME = "LLVMIRToISATimeInMs"  # a property of an object
HANDLER = "#gpu.select_object"  # as gpu-module-to-binary writes it: selects the first object
LOWERED = ("llvm.", "nvvm.")
BUILT_IN = frozenset({"vprintf", "malloc", "free", "__assertfail"})  # CUDA's own, on every device
CAST = "builtin.unrealized_conversion_cast"


def lower_to_program(
    module: ir.Module, chip: Chip, buffers: tuple[KernelBuffer, ...], batch: int = 1
) -> KernelCode:
    """Lowers a module with ``gpu.launch`` ops in place; returns its program: PTX, launches and buffers.

    The program has no machine code (cubin) and no resources yet. ``buffers``: the problem's, in the order of
    the payload function's arguments. Module and buffers are of one matrix pair; the program computes
    ``batch`` pairs (``tuner.gpu.mlir.batches``). The module's context must be the current one. Raises
    CandidateError: RESOURCES for too much memory, COMPILE where a pass fails or the chip lacks an op;
    UsageError if the wheel that makes PTX is not installed.
    """
    host, alignment_bytes = outline(module, chip, buffers)
    tensor_maps.record_tensor_maps(module)
    if batch > 1:
        batches.note_batches(module, host)
        host = batches.for_every_matrix(host, batch)
    ptx = kernels_to_ptx(module, chip, alignment_bytes)
    return KernelCode(chip.name, ptx, b"", host.launches, host.buffers)


def outline(module: ir.Module, chip: Chip, buffers: tuple[KernelBuffer, ...]) -> tuple[LaunchSequence, int]:
    """Outlines kernels in place; returns the launches, and the alignment of dynamic shared memory in bytes.

    The module stays in GPU dialect. Raises CandidateError: RESOURCES for too much memory, COMPILE for other
    failures.
    """
    alignment_bytes = outline_kernels(module, chip)
    reached("kernels", module)
    return read_launches(module, buffers), alignment_bytes


def outline_launches(module: ir.Module) -> None:
    """Outlines each ``gpu.launch`` to a ``gpu.func`` in one ``gpu.module``, in place; expands no ops.

    Kernels get the shared memory that the host allocated for them. Raises CandidateError(COMPILE) where a
    pass fails, or the host uses memory of kernels.
    """
    name_memory_spaces(module)
    kernel_memory.move_into_launches(module)
    if not walk(module, "memref.dealloc"):
        run_passes(module, HOIST)
    run_passes(module, SINK)
    kernel_passes.sink_undefined_values(module)
    kernel_passes.outline_with_bounds(module, OUTLINE)
    kernel_memory.drop_shared_globals(module)
    modules.merge_gpu_modules(module)


def outline_kernels(module: ir.Module, chip: Chip) -> int:
    """Outlines kernels and expands their composed ops and memory, in place.

    Returns the alignment of dynamic shared memory in bytes, the largest of all kernels. Raises
    CandidateError: RESOURCES for too much memory, COMPILE for other failures.
    """
    outline_launches(module)
    expand_reductions(module)
    expand_lane_moves(module)
    widen_narrow_shuffles(module)
    kernel_passes.widen_printed_integers(module)
    kernel_passes.expand_composed_ops(module)
    expand_warp_ids(module)
    expand_copies(module)
    use_private_memory(module)
    use_dynamic_shared_globals(module)
    tensor_maps.align_shared_globals(module)
    if kernel_passes.propagate_constant_arguments(module):
        run_passes(module, CLEAN)
    blocks = use_dynamic_shared_memory(module, chip.max_shared_bytes)
    return max((block.alignment_bytes for block in blocks), default=1)


def kernels_to_ptx(
    module: ir.Module,
    chip: Chip,
    alignment_bytes: int,
    *,
    bare_pointers: bool = True,
    has_lines: bool = False,
) -> str:
    """Lowers the only ``gpu.module`` of a module to a ``gpu.binary``, in place; returns its PTX.

    ``alignment_bytes``: of dynamic shared memory. With ``bare_pointers`` a kernel takes an address for a
    memref, else all fields of a descriptor. With ``has_lines`` the PTX has the payload's lines, as .loc
    directives. Raises CandidateError(COMPILE) where a pass fails or the chip lacks what an op needs,
    UsageError if the wheel that makes PTX is not installed.
    """
    reject_what_the_chip_lacks(module, chip)  # here the message names the ops that the author wrote
    tensor_maps.pass_tensor_maps_by_address(module)
    lower_math(module)
    run_passes(module, TO_LLVM.format(chip=chip.name, features=chip.features))
    kernel_passes.call_intrinsics_directly(module)
    lower_fragment_elementwise(module)
    run_passes(module, TO_NVVM.format(bare_pointers=str(bare_pointers).lower()))
    tensor_maps.pass_tensor_maps_by_value(module)
    batches.choose_matrices(module)
    reject_what_was_not_lowered(module)
    reject_what_the_chip_lacks(module, chip)
    kernel_passes.relax_unused_atomics(module)
    reached("nvvm", module)
    run_passes(module, TO_INLINE_PTX)
    kernel_passes.call_barriers_directly(module)
    make_shared_memory_external(module, alignment_bytes)
    binary = compile_kernels(walk(module, "gpu.module")[0], TO_PTX_WITH_LINES if has_lines else TO_PTX)
    code = gpu.ObjectAttr(ir.ArrayAttr(binary.attributes["objects"])[0]).object
    return bytes(code).rstrip(b"\0").decode()


def compile_kernels(kernels: Op, pipeline: str = TO_PTX) -> Op:
    """Replaces a ``gpu.module`` by its ``gpu.binary``, compiled by the wheel with NVPTX; returns the binary.

    Text passes the module to that wheel and back. Raises CandidateError(COMPILE) where a pass fails,
    UsageError where the wheel is not installed.
    """
    ptx = ptx_bindings()
    text = kernels.get_asm(enable_debug_info=True, use_local_scope=True)
    try:
        with ptx.ir.Context(), ptx.ir.Location.unknown():
            module = ptx.ir.Module.parse(f"module attributes {{gpu.container_module}} {{{text}}}")
            run_pipeline(module, pipeline, ptx.PassManager)
            compiled = str(module.body.operations[0])
    except (ptx.ir.MLIRError, ValueError, RuntimeError) as error:
        raise CandidateError(Stage.COMPILE, first_diagnostic(error)) from error
    binary = ir.Operation.parse(compiled)
    ir.InsertionPoint(kernels).insert(binary)
    kernels.erase()
    return binary


def without_debug_sections(ptx: str) -> str:
    """Returns PTX text without debug sections, which make ptxas build debug code; .loc directives stay."""
    code, _, _ = ptx.partition("\t.section\t.debug")
    return code.replace(", debug\n", "\n", 1)


def store_objects(holder: Op, chip: Chip, alignment_bytes: int) -> None:
    """Compiles a copy of a ``gpu.module`` and stores its PTX as an attribute of ``holder``, the original.

    ``alignment_bytes``: of dynamic shared memory. Raises CandidateError(COMPILE) where a pass fails or the
    chip lacks what an op needs, UsageError if the wheel that makes PTX is not installed.
    """
    alone = ir.Module.create()
    alone.operation.attributes["gpu.container_module"] = ir.UnitAttr.get()
    with ir.InsertionPoint(alone.body):
        holder.clone()
    kernels_to_ptx(alone, chip, alignment_bytes)
    (image,) = ir.ArrayAttr(walk(alone, "gpu.binary")[0].attributes["objects"])
    holder.attributes[modules.OBJECTS] = ir.ArrayAttr.get([_without_time(gpu.ObjectAttr(image))])


def _without_time(image: gpu.ObjectAttr) -> gpu.ObjectAttr:
    """Returns an object without upstream's property of compile time, which differs each time."""
    kept = {attribute.name: attribute.attr for attribute in image.properties if attribute.name != TIME}
    return gpu.ObjectAttr.get(image.target, image.format, image.object, ir.DictAttr.get(kept), image.kernels)


def replace_by_binaries(module: ir.Module) -> frozenset[str]:
    """Replaces each ``gpu.module`` that has compiled code by a ``gpu.binary`` of it.

    Returns the modules' names. A tuned script's ``gpu.module`` keeps its body, from which its effects are
    read, and has its code in the attribute ``tuner.objects`` (``store_objects``). Such kernels take addresses
    for memrefs, even if other kernels do not.

        gpu.module @kernels_64x64x64 attributes {tuner.objects = [#gpu.object<#nvvm.target, "...">]} {
          gpu.func @matmul(%a: memref<64x64xf32>) kernel { ... }
      becomes, once effects are known
        gpu.binary @kernels_64x64x64 [#gpu.object<#nvvm.target, "...">]
    """
    ready = list(filter(modules.has_objects, walk(module, "gpu.module")))
    for holder in ready:
        with holder.location, ir.InsertionPoint(holder):
            create(
                "gpu.binary",
                sym_name=holder.attributes["sym_name"],
                objects=holder.attributes[modules.OBJECTS],
                offloadingHandler=ir.Attribute.parse(HANDLER),
            )
    names = frozenset(map(name_of, ready))
    for holder in ready:
        holder.erase()
    return names


def drop_code(module: ir.Module) -> None:
    """Removes the code that ``store_objects`` stored in ``gpu.module`` ops, in place; kernel bodies stay."""
    for holder in walk(module, "gpu.module"):
        if modules.has_objects(holder):
            del holder.attributes[modules.OBJECTS]


def pass_addresses(module: ir.Module, names: frozenset[str]) -> None:
    """Makes launches of kernels in the modules ``names`` pass an address for each memref, in place.

    Upstream can do so only for all kernels of a module at once.
    """
    for launch in walk(module, "gpu.launch_func"):
        if module_of(launch) in names:
            first = sum(list(ir.DenseI32ArrayAttr(launch.attributes[SEGMENTS]))[:ARGUMENTS])
            for number in range(first, len(launch.operands)):
                memref = launch.operands[number]
                if not isinstance(memref.type, ir.MemRefType):
                    continue
                with launch.location, ir.InsertionPoint(launch):
                    address = value("memref.extract_aligned_pointer_as_index", ir.IndexType.get(), memref)
                    integer = value("arith.index_cast", ir.IntegerType.get_signless(64), address)
                    launch.operands[number] = value("llvm.inttoptr", ir.Type.parse("!llvm.ptr"), integer)


# Checks of device code on which LLVM would abort ("Cannot select"), or fail without a reason.


@dataclass(frozen=True)
class Requirement:
    """What ops whose names start with ``prefix`` need of a chip: a compute capability, and maybe "a" chips.

    "a" chips are those whose name ends in "a". ``most`` is there because sm_100a lacks some of what sm_90a
    has.
    """

    prefix: str  # of the op's name
    capability: int  # the lowest compute capability, major * 10 + minor
    is_specific: bool = False  # only chips whose name ends in "a"
    most: int = 1000  # the highest compute capability
    ptx: str = ""  # a part of the text of an op that is inline PTX; "": any op of the prefix

    def is_of(self, op: Op) -> bool:
        """Returns whether this requirement applies to ``op``, whose name must start with ``prefix``."""
        return not self.ptx or self.ptx in ir.StringAttr(op.attributes["asm_string"]).value

    def allows(self, chip: Chip) -> bool:
        """Returns whether ``chip`` has what the ops of this requirement need."""
        is_between = self.capability <= chip.capability <= self.most
        return is_between and (chip.is_specific or not self.is_specific)


# Each was tried on every chip of the table: LLVM of numba-cuda-mlir 0.6 aborts, or gives no useful message.
REQUIREMENTS = (
    *(
        Requirement(f"nvvm.{name}", 90)
        for name in (
            *("cluster.", "cp.async.bulk", "elect.sync", "fence.mbarrier", "fence.proxy", "griddepcontrol"),
            *("mapa", "read.ptx.sreg.cluster", "stmatrix"),
        )
    ),
    *(
        Requirement(f"nvgpu.{name}", 90)
        for name in ("tma.", "mbarrier.arrive.expect_tx", "mbarrier.try_wait")  # of PTX: sm_90
    ),
    Requirement("nvgpu.warpgroup.", 90, is_specific=True, most=90),
    Requirement("nvvm.setmaxregister", 90, is_specific=True),
    Requirement("nvvm.wgmma.", 90, is_specific=True, most=90),
    Requirement("nvvm.tcgen05.", 100, is_specific=True),
    *(Requirement("llvm.inline_asm", 89, ptx=f".f32.{dtype}.") for dtype in ("e4m3", "e5m2")),  # mma.sync
)


def reject_what_the_chip_lacks(module: ir.Module, chip: Chip) -> None:
    """Raises CandidateError(COMPILE) if an op in a ``gpu.module`` needs what ``chip`` lacks."""
    unmet = [requirement for requirement in REQUIREMENTS if not requirement.allows(chip)]
    for name, ops in _device_operations(module).items():
        for requirement in unmet:
            lacking = list(filter(requirement.is_of, ops)) if name.startswith(requirement.prefix) else []
            if lacking:
                fitting = [other for other, limits in CHIPS.items() if requirement.allows(limits)]
                raise unsupported(lacking[0], f"chip {chip.name}", ", ".join(fitting) or "none that is known")


def reject_what_was_not_lowered(module: ir.Module) -> None:
    """Raises CandidateError(COMPILE) if a ``gpu.module`` has an op that was not lowered, or calls a library.

    Translation would fail too, but its message names only the type cast that remains; a library's function,
    such as libdevice's, would be found by ptxas or at launch. Functions that CUDA itself has are allowed.
    """
    operations = _device_operations(module)
    missing: dict[str, Op] = {}
    for op in operations.get("llvm.func", ()):
        if len(op.regions[0].blocks) == 0 and name_of(op) not in BUILT_IN:
            missing[name_of(op)] = op
    if missing:
        calls = [op for op in operations.get("llvm.call", ()) if callee_of(op) in missing]
        name = callee_of(calls[0]) if calls else next(iter(missing))
        raise unsupported([*calls, missing[name]][0], f"a call of {name}", "what PTX itself has")
    left = [name for name in operations if not name.startswith(LOWERED)]
    named = [name for name in left if name != CAST] or left
    if named:
        raise unsupported(operations[named[0]][0], "no lowering", "what lowers to NVVM")


def _device_operations(module: ir.Module) -> dict[str, list[Op]]:
    operations: dict[str, list[Op]] = {}

    def visit(op: Op) -> WalkResult:
        operations.setdefault(op.name, []).append(op)
        return WalkResult.ADVANCE

    for holder in walk(module, "gpu.module"):
        for op in holder.regions[0].blocks[0].operations:
            walk_ops(op, visit, is_pre_order=True)
    return operations
