"""Launch bounds: what a script says of a ``gpu.launch`` becomes an attribute of its kernel.

Takes a module before outlining, which drops attributes of launches. The number of blocks that are to fit on
a multiprocessor limits the registers of a kernel (PTX: ``.minnctapersm``; ``-maxrregcount`` does nothing for
kernels that say the size of their blocks, as these do). Not handled: launches in ``gpu.module`` ops.

    gpu.launch blocks(...) in (...) threads(...) in (...) {
    } {nvvm.minctasm = 2 : i32}
  becomes
    gpu.func @f_kernel() kernel attributes {..., nvvm.minctasm = 2 : i32} {
"""

from tuner.mlir.bindings import Attribute, Op, ir
from tuner.mlir.pipeline import run_passes
from tuner.mlir.rewrite.launch_operands import kernel_of, module_of
from tuner.mlir.rewrite.symbols import name_of
from tuner.mlir.rewrite.walking import walk, walk_where

MIN_BLOCKS = "nvvm.minctasm"
LAUNCHES = frozenset({"gpu.launch", "gpu.launch_func"})


def outline_with_bounds(module: ir.Module, pipeline: str) -> None:
    """Outlines kernels by a pipeline and gives them what their launches say; launches stay in their order."""
    launches = walk_where(module, _is_launch)
    bounds = [op.attributes.get(MIN_BLOCKS) for op in launches]
    run_passes(module, pipeline)
    if all(bound is None for bound in bounds):
        return
    for launch, bound in zip(walk_where(module, _is_launch), bounds, strict=True):
        if bound is not None:
            _set(module, launch, bound)


def _is_launch(op: Op) -> bool:
    return op.name in LAUNCHES


def _set(module: ir.Module, launch: Op, bound: Attribute) -> None:
    wanted = (module_of(launch), kernel_of(launch))
    for kernel in walk(module, "gpu.func"):
        if (name_of(kernel.parent), name_of(kernel)) == wanted:
            kernel.attributes[MIN_BLOCKS] = bound
