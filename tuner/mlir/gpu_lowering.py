"""From a module whose script made ``gpu.launch`` ops to PTX and the launches around it."""

import hashlib
from importlib.resources import files

from tuner.chips import CHIPS, Chip
from tuner.errors import CandidateError, Stage
from tuner.kernel import KernelBuffer, KernelProgram
from tuner.mlir import passes
from tuner.mlir.bindings import gpu, ir, passmanager
from tuner.mlir.gpu_guards import reject_what_the_chip_lacks, reject_what_was_not_lowered
from tuner.mlir.host_program import HostProgram, read_host_program
from tuner.mlir.interpreter import first_complaint
from tuner.mlir.ops.dialect import walk
from tuner.mlir.passes.composed_ops import expand_composed_ops
from tuner.mlir.passes.device_atomics import relax_reductions
from tuner.mlir.passes.device_math import lower_math
from tuner.mlir.passes.dynamic_shared_memory import use_dynamic_shared_memory
from tuner.mlir.passes.external_shared_memory import make_shared_memory_external
from tuner.mlir.passes.kept_intrinsics import keep_intrinsics
from tuner.mlir.passes.one_gpu_module import merge_gpu_modules
from tuner.mlir.passes.private_memory import use_private_memory
from tuner.mlir.passes.warp_ids import expand_warp_ids

# The sink pass comes before outlining: without it constants become kernel parameters.
OUTLINE = "builtin.module(canonicalize,cse,gpu-launch-sink-index-computations,gpu-kernel-outlining)"
# Takes allocations out of loops and leaves their deallocations there: for those who free nothing.
HOIST = "builtin.module(func.func(buffer-loop-hoisting))"
# With bare pointers a kernel takes addresses, sizes and strides are static. Loop-invariant code moves while
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
TO_PTX = "builtin.module(gpu-module-to-binary{format=isa})"


def gpu_pipeline_sha256() -> str:
    """Returns the hash of everything that changes code: pipelines, PTX versions, the passes in Python."""
    features = repr([(chip.name, chip.features) for chip in CHIPS.values()])
    digest = hashlib.sha256((HOIST + OUTLINE + TO_LLVM + TO_NVVM + TO_PTX + features).encode())
    for source in sorted(files(passes).iterdir(), key=lambda file: file.name):
        if source.name.endswith(".py"):
            digest.update(source.read_bytes())
    return digest.hexdigest()


def lower_to_program(module: ir.Module, chip: Chip, buffers: tuple[KernelBuffer, ...]) -> KernelProgram:
    """Lowers in place; the result has PTX and launches, no cubin and no resources yet.

    ``buffers`` are the problem's, in the order of the payload function's arguments; the module may add
    scratch, see ``tuner.mlir.host_program``. The module's context must be the current one.
    Raises CandidateError, stage COMPILE or RESOURCES.
    """
    host, alignment_bytes = outline(module, chip, buffers)
    ptx = kernels_to_ptx(module, chip, alignment_bytes)
    return KernelProgram(chip.name, ptx, b"", host.launches, host.buffers)


def outline(module: ir.Module, chip: Chip, buffers: tuple[KernelBuffer, ...]) -> tuple[HostProgram, int]:
    """Makes ``gpu.func`` ops with dynamic shared memory; returns the host's part and the memory's alignment.

    The module then still is GPU dialect, with ``dynamic_shared_memory_size`` on every launch.
    """
    alignment_bytes = outline_kernels(module, chip)
    return read_host_program(module, buffers), alignment_bytes


def outline_kernels(module: ir.Module, chip: Chip) -> int:
    """Makes one ``gpu.module`` of all kernels; returns the alignment of their dynamic shared memory."""
    if not walk(module, "memref.dealloc"):
        _run(module, HOIST)
    _run(module, OUTLINE)
    merge_gpu_modules(module)
    expand_composed_ops(module)
    expand_warp_ids(module)
    use_private_memory(module)
    blocks = use_dynamic_shared_memory(module, chip.max_shared_bytes)
    return max((block.alignment_bytes for block in blocks), default=1)


def kernels_to_ptx(module: ir.Module, chip: Chip, alignment_bytes: int, *, bare_pointers: bool = True) -> str:
    """Turns the outlined kernels into a ``gpu.binary`` of PTX, which is returned.

    ``bare_pointers`` says what a kernel takes for a memref: an address, or all of a descriptor.
    """
    lower_math(module)
    _run(module, TO_LLVM.format(chip=chip.name, features=chip.features))
    keep_intrinsics(module)
    _run(module, TO_NVVM.format(bare_pointers=str(bare_pointers).lower()))
    reject_what_was_not_lowered(module)
    reject_what_the_chip_lacks(module, chip)
    relax_reductions(module)
    make_shared_memory_external(module, alignment_bytes)
    _run(module, TO_PTX)
    binary = walk(module, "gpu.binary")[0]
    code = gpu.ObjectAttr(ir.ArrayAttr(binary.attributes["objects"])[0]).object
    return bytes(code).rstrip(b"\0").decode()


def _run(module: ir.Module, pipeline: str) -> None:
    try:
        passmanager.PassManager.parse(pipeline).run(module.operation)
    except (ir.MLIRError, ValueError, RuntimeError) as error:
        raise CandidateError(Stage.COMPILE, first_complaint(error)) from error
