"""The one import of the MLIR bindings: transforms and lowering from one wheel, the host JIT from another.

Decision 0001 says why there are two; the eudsl wheel, which has all of it, would replace both here.
"""

from importlib.metadata import version
from typing import Any

from numba_cuda_mlir._mlir import ir, passmanager
from numba_cuda_mlir._mlir.dialects import ext, gpu, transform
from numba_cuda_mlir._mlir.dialects.transform import interpreter

__all__ = [
    "ext",
    "gpu",
    "interpreter",
    "ir",
    "jit_bindings",
    "llvm_version",
    "packages",
    "passmanager",
    "transform",
]

LLVM_OF_WHEEL = {"numba-cuda-mlir": "LLVM 23 snapshot", "torch-mlir": "LLVM snapshot of its date"}


def jit_bindings() -> tuple[Any, Any]:
    """Returns (ir, execution_engine) of the wheel with the X86 back end; imported only where code is run."""
    from torch_mlir import execution_engine
    from torch_mlir import ir as jit_ir

    return jit_ir, execution_engine


def packages() -> tuple[tuple[str, str], ...]:
    """Returns (distribution, version) of everything that makes code."""
    return tuple((name, version(name)) for name in LLVM_OF_WHEEL)


def llvm_version() -> str:
    """Returns one line that names the compiler: no wheel tells its LLVM revision, the versions pin it."""
    return "; ".join(f"{name} {number} ({LLVM_OF_WHEEL[name]})" for name, number in packages())
