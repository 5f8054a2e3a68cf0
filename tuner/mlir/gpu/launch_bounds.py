"""Launch bounds: attributes that a script sets on a ``gpu.launch`` become attributes of its kernel.

Takes a module before outlining, which drops attributes of launches. The minimum number of blocks per
multiprocessor limits the registers of a kernel (PTX: ``.minnctapersm``; ``-maxrregcount`` has no effect on
kernels that declare their block size, as these do). The cluster size (``.reqnctapercluster``) becomes part of
the kernel, so that every launch of it launches clusters; so does the grid of tiles. Not handled: launches in
``gpu.module`` ops.

    gpu.launch blocks(...) in (...) threads(...) in (...) {
    } {nvvm.cluster_dim = array<i32: 1, 2, 1>, nvvm.minctasm = 2 : i32, ...}
  becomes
    gpu.func @f_kernel() kernel attributes {..., nvvm.cluster_dim = ..., nvvm.minctasm = 2 : i32, ...} {
"""

from tuner.mlir.bindings import Attribute, Op, ir
from tuner.mlir.pipeline import run_passes
from tuner.mlir.rewrite.launch_operands import CLUSTER_SIZE, TILE_GRID, kernel_of, module_of
from tuner.mlir.rewrite.symbols import name_of
from tuner.mlir.rewrite.walking import walk

BOUNDS = ("nvvm.minctasm", CLUSTER_SIZE, TILE_GRID)
LAUNCHES = ("gpu.launch", "gpu.launch_func")


def outline_with_bounds(module: ir.Module, pipeline: str) -> None:
    """Outlines kernels by running ``pipeline``, and copies the launch bounds of each launch to its kernel.

    ``pipeline`` is a textual pass pipeline, which must keep the order of launches. The bounds are attributes
    of a launch: the minimum number of blocks per multiprocessor, the cluster size, the grid of tiles. Raises
    CandidateError(COMPILE) where a pass fails.
    """
    launches = walk(module, *LAUNCHES)
    bounds = [
        {name: op.attributes[name] for name in BOUNDS if op.attributes.get(name) is not None}
        for op in launches
    ]
    run_passes(module, pipeline)
    if not any(bounds):
        return
    for launch, said in zip(walk(module, *LAUNCHES), bounds, strict=True):
        if said:
            _set(module, launch, said)


def _set(module: ir.Module, launch: Op, bounds: dict[str, Attribute]) -> None:
    wanted = (module_of(launch), kernel_of(launch))
    for kernel in walk(module, "gpu.func"):
        if (name_of(kernel.parent), name_of(kernel)) == wanted:
            for name, bound in bounds.items():
                kernel.attributes[name] = bound
