"""Lowers a module in which a script created ``gpu.launch`` ops to PTX and the sequence of its launches.

    gpu.launch in host functions
      -> outline_kernels: gpu.func in one gpu.module; shared, private memory and composed ops expanded
      -> read_launches: the host code, which is not compiled
      -> kernels_to_ptx: math as formulas, LLVM dialect, NVVM, checks, PTX text by LLVM

Each step in Python is a module of this package; the textual pipelines between them are below.
"""

from tuner.core.chips import Chip
from tuner.core.kernel_program import KernelBuffer, KernelProgram
from tuner.mlir.bindings import gpu, ir
from tuner.mlir.gpu.batches import choose_matrices, for_every_matrix, note_batches
from tuner.mlir.gpu.chip_guards import reject_what_the_chip_lacks, reject_what_was_not_lowered
from tuner.mlir.gpu.composed_ops import expand_composed_ops
from tuner.mlir.gpu.constant_arguments import propagate_constant_arguments
from tuner.mlir.gpu.copies_in_kernels import expand_copies
from tuner.mlir.gpu.device_atomics import relax_unused_atomics
from tuner.mlir.gpu.dynamic_shared_globals import use_dynamic_shared_globals
from tuner.mlir.gpu.dynamic_shared_memory import use_dynamic_shared_memory
from tuner.mlir.gpu.external_shared_memory import make_shared_memory_external
from tuner.mlir.gpu.fragment_elementwise import lower_fragment_elementwise
from tuner.mlir.gpu.kept_intrinsics import call_intrinsics_directly
from tuner.mlir.gpu.launch_bounds import outline_with_bounds
from tuner.mlir.gpu.launch_memory import drop_shared_globals, move_into_launches
from tuner.mlir.gpu.launches import LaunchSequence, read_launches
from tuner.mlir.gpu.merge_gpu_modules import merge_gpu_modules
from tuner.mlir.gpu.narrow_shuffles import widen_narrow_shuffles
from tuner.mlir.gpu.printed_integers import widen_printed_integers
from tuner.mlir.gpu.private_memory import use_private_memory
from tuner.mlir.gpu.reductions import expand_reductions
from tuner.mlir.gpu.sink_undefined import sink_undefined_values
from tuner.mlir.gpu.tensor_map_parameters import note_tensor_maps, pass_tensor_maps_by_value
from tuner.mlir.gpu.tensor_maps import align_shared_globals, pass_tensor_maps_by_address
from tuner.mlir.gpu.warp_ids import expand_warp_ids
from tuner.mlir.lowering_stages import reached
from tuner.mlir.math.math_lowering import lower_math
from tuner.mlir.pipeline import run_passes
from tuner.mlir.rewrite.memory_spaces import name_memory_spaces
from tuner.mlir.rewrite.symbols import name_of
from tuner.mlir.rewrite.walking import walk

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


def lower_to_program(
    module: ir.Module, chip: Chip, buffers: tuple[KernelBuffer, ...], batch: int = 1
) -> KernelProgram:
    """Lowers a module with ``gpu.launch`` ops in place; returns a program with PTX, launches and buffers.

    The program has no machine code (cubin) and no resources yet. ``buffers`` are the problem's, in the order
    of the payload function's arguments; the module may add scratch buffers, see ``tuner.mlir.gpu.launches``.
    Module and buffers are those of one matrix pair; the program computes ``batch`` of them, see
    ``tuner.mlir.gpu.batches``. The module's context must be the current one. Raises CandidateError, stage
    COMPILE or RESOURCES.
    """
    host, alignment_bytes = outline(module, chip, buffers)
    note_tensor_maps(module)
    if batch > 1:
        note_batches(module, host)
        host = for_every_matrix(host, batch)
    ptx = kernels_to_ptx(module, chip, alignment_bytes)
    return KernelProgram(chip.name, ptx, b"", host.launches, host.buffers)


def outline(module: ir.Module, chip: Chip, buffers: tuple[KernelBuffer, ...]) -> tuple[LaunchSequence, int]:
    """Outlines kernels in place; returns the launches and the alignment of dynamic shared memory in bytes.

    Does what ``outline_kernels`` does, then reads the host code; ``buffers`` are the problem's. The module
    stays in GPU dialect. Raises CandidateError, stage COMPILE or RESOURCES.
    """
    alignment_bytes = outline_kernels(module, chip)
    reached("kernels", module)
    return read_launches(module, buffers), alignment_bytes


def outline_launches(module: ir.Module) -> None:
    """Outlines each ``gpu.launch`` to a ``gpu.func``, all in one ``gpu.module``, in place.

    Kernels are simplified, and get the shared memory that the host allocated for them. Their ops are not
    expanded: ``outline_kernels`` does that too. Raises CandidateError(COMPILE).
    """
    name_memory_spaces(module)
    move_into_launches(module)
    if not walk(module, "memref.dealloc"):
        run_passes(module, HOIST)
    run_passes(module, SINK)
    sink_undefined_values(module)
    outline_with_bounds(module, OUTLINE)
    drop_shared_globals(module)
    merge_gpu_modules(module)


def outline_kernels(module: ir.Module, chip: Chip) -> int:
    """Outlines kernels as ``outline_launches`` does, and expands their composed ops and memory, in place.

    Composed ops are reductions, copies, warp ids and others; shared memory becomes one dynamic block per
    kernel. Returns the alignment of dynamic shared memory in bytes, the largest of all kernels. Raises
    CandidateError, stage COMPILE or RESOURCES.
    """
    outline_launches(module)
    expand_reductions(module)
    widen_narrow_shuffles(module)
    widen_printed_integers(module)
    expand_composed_ops(module)
    expand_warp_ids(module)
    expand_copies(module)
    use_private_memory(module)
    use_dynamic_shared_globals(module)
    align_shared_globals(module)
    if propagate_constant_arguments(module):
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
    """Lowers the only ``gpu.module`` of a module in place to a ``gpu.binary``; returns its PTX.

    ``alignment_bytes`` is that of dynamic shared memory, as ``outline_kernels`` returns it. With
    ``bare_pointers`` a kernel takes an address for a memref, else all fields of a descriptor. With
    ``has_lines`` the PTX has the payload's line of each instruction, as .loc directives. Raises
    CandidateError(COMPILE).
    """
    name = name_of(walk(module, "gpu.module")[0])
    reject_what_the_chip_lacks(module, chip)  # here the message names the ops that the author wrote
    pass_tensor_maps_by_address(module)
    lower_math(module)
    run_passes(module, TO_LLVM.format(chip=chip.name, features=chip.features))
    call_intrinsics_directly(module)
    lower_fragment_elementwise(module)
    run_passes(module, TO_NVVM.format(bare_pointers=str(bare_pointers).lower()))
    pass_tensor_maps_by_value(module)
    choose_matrices(module)
    reject_what_was_not_lowered(module)
    reject_what_the_chip_lacks(module, chip)
    relax_unused_atomics(module)
    reached("nvvm", module)
    run_passes(module, TO_INLINE_PTX)
    make_shared_memory_external(module, alignment_bytes)
    run_passes(module, TO_PTX_WITH_LINES if has_lines else TO_PTX)
    binary = next(each for each in walk(module, "gpu.binary") if name_of(each) == name)
    code = gpu.ObjectAttr(ir.ArrayAttr(binary.attributes["objects"])[0]).object
    return bytes(code).rstrip(b"\0").decode()


def without_debug_sections(ptx: str) -> str:
    """Returns PTX text without debug sections, which make ptxas build debug code; .loc directives stay."""
    code, _, _ = ptx.partition("\t.section\t.debug")
    return code.replace(", debug\n", "\n", 1)
