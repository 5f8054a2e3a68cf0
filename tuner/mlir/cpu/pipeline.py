"""The textual pass pipelines from a transformed payload to LLVM dialect for the CPU."""

from tuner.core.machine import Compiler
from tuner.mlir.fingerprint import CPU_SOURCES, sources_sha256
from tuner.mlir.wheels import llvm_version, packages

TO_LOOPS = (  # on memrefs and vectors
    "builtin.module(buffer-deallocation-pipeline,convert-bufferization-to-memref,"
    "func.func(convert-linalg-to-loops,lower-vector-multi-reduction{lowering-strategy=inner-reduction}),"
    "convert-vector-to-scf,fold-memref-alias-ops,expand-strided-metadata,"
    "lower-affine,cse)"
)
# Bare pointers: a kernel takes addresses; sizes and strides are static. Outer products become fma intrinsics.
LOOPS_TO_LLVM = (
    "builtin.module(convert-scf-to-cf,"
    "convert-vector-to-llvm{enable-x86 vector-contract-lowering=outerproduct},"
    "convert-ub-to-llvm,finalize-memref-to-llvm,convert-func-to-llvm{use-bare-ptr-memref-call-conv=true},"
    "convert-arith-to-llvm,convert-index-to-llvm,convert-to-llvm{filter-dialects=cf,x86},reconcile-unrealized-casts,cse)"
)
# LLVM's loop idiom pass would call a memset that the JIT's wheel names wrongly: keep loops as loops.
NO_BUILTINS = 'passthrough = ["no-builtins"]'


def cpu_compiler() -> Compiler:
    """Returns what identifies the CPU compiler: versions of the MLIR wheels, and a hash of its sources."""
    return Compiler(llvm_version(), packages(), sources_sha256(CPU_SOURCES))
