"""Makes host code assert that each load and store is in bounds, by an upstream pass.

    memref.store %x, %a[%i] : memref<8xf32>
  becomes
    %0 = arith.cmpi sge, %i, %c0 : index
    %1 = arith.cmpi slt, %i, %c8 : index
    %2 = arith.andi %0, %1 : i1
    cf.assert %2, "ERROR: Runtime op verification failed ..."
    memref.store %x, %a[%i] : memref<8xf32>

Not checked: vector accesses, and code that is in the LLVM dialect already.
"""

from tuner.mlir.bindings import ir
from tuner.mlir.pipeline import run_passes

ASSERT_BOUNDS = (
    "builtin.module(func.func(convert-linalg-to-loops),lower-affine,func.func(generate-runtime-verification))"
)


def assert_bounds(module: ir.Module) -> None:
    """Inserts a ``cf.assert`` before each load and store of a module, in place: indices must be in bounds.

    Lowers linalg ops to loops, and affine ops, first. Vector accesses and code in the LLVM dialect are not
    checked. Raises CandidateError(COMPILE) where a pass fails.
    """
    run_passes(module, ASSERT_BOUNDS)
