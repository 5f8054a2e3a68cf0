"""Launch bounds: what a script says of a ``gpu.launch`` becomes an attribute of its kernel.

Takes a module before outlining, which drops attributes of launches. The number of blocks that are to fit on
a multiprocessor limits the registers of a kernel (PTX: ``.minnctapersm``; ``-maxrregcount`` does nothing for
kernels that say the size of their blocks, as these do). The size of clusters (``.reqnctapercluster``) goes
with the kernel, so that whatever launches it launches clusters, and so does the grid of tiles. Not handled:
launches in ``gpu.module`` ops.

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
    """Outlines kernels by a pipeline and gives them what their launches say; launches stay in their order."""
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
