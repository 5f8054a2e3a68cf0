"""Keeps the source of a program's kernels, so that an interpreter can compute what they should do.

Takes a module before its kernels are outlined and does not change it; returns the text of the kernels that
``tuner.programs.interpret`` supports, with the names and parameters that they have on a device. Omitted are
kernels with another reference, and kernels with instructions of one target.
"""

from tuner.core.errors import CandidateError
from tuner.mlir.bindings import Op, ir
from tuner.mlir.gpu.lowering import outline_launches
from tuner.mlir.pipeline import run_passes
from tuner.mlir.rewrite.module_copy import copy_of
from tuner.mlir.rewrite.symbols import name_of
from tuner.mlir.rewrite.walking import walk
from tuner.programs.interpret.kernels import decode_kernel

LOWER_AFFINE = "builtin.module(lower-affine)"


def reference_kernels(module: ir.Module, left_out: frozenset[str]) -> str:
    """Returns the MLIR text of a module's kernels that the interpreter supports; "" if there are none.

    The interpreter computes from it what the kernels should do. The module stays unchanged.

    Args:
        module: a program whose kernels are not outlined yet.
        left_out: names of kernels to omit.
    """
    copy = copy_of(module)
    outline_launches(copy)
    run_passes(copy, LOWER_AFFINE)
    is_kept = False
    for kernel in walk(copy, "gpu.func"):
        if name_of(kernel) in left_out or not _is_known(kernel):
            kernel.erase()
        else:
            is_kept = True
    for op in list(copy.body.operations):
        if op.operation.name != "gpu.module":
            op.operation.erase()
    return str(copy.operation.get_asm(enable_debug_info=True)) if is_kept else ""


def _is_known(kernel: Op) -> bool:
    try:
        decode_kernel(kernel)
    except CandidateError:
        return False
    return True
