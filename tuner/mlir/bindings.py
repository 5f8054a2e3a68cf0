"""The one import of the MLIR bindings: transforms and lowering from one wheel, the host JIT from another.

Decision 0001 says why there are two; the eudsl wheel, which has all of it, would replace both here.
"""

from typing import Any, TypeAlias

from numba_cuda_mlir._mlir import ir, passmanager
from numba_cuda_mlir._mlir import rewrite as pattern_rewrites
from numba_cuda_mlir._mlir.dialects import ext, gpu, transform
from numba_cuda_mlir._mlir.dialects.transform import interpreter

__all__ = [
    "Attribute",
    "Block",
    "Op",
    "Type",
    "Value",
    "WalkResult",
    "ext",
    "gpu",
    "interpreter",
    "ir",
    "jit_bindings",
    "passmanager",
    "pattern_rewrites",
    "transform",
]

# The wheel has no stubs for `ir`: mypy reads each of these as Any. They tell a reader what a function takes.
Op: TypeAlias = ir.Operation | ir.OpView  # a walk gives the one, a builder the other
Value: TypeAlias = ir.Value
Block: TypeAlias = ir.Block
Type: TypeAlias = ir.Type
Attribute: TypeAlias = ir.Attribute
WalkResult: TypeAlias = ir.WalkResult


def jit_bindings() -> tuple[Any, Any]:
    """Returns (ir, execution_engine) of the wheel with the X86 back end; imported only where code is run."""
    from torch_mlir import execution_engine
    from torch_mlir import ir as jit_ir

    return jit_ir, execution_engine
