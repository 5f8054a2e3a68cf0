"""The textual pass pipelines from a transformed payload to LLVM dialect for the CPU, and their version."""

from tuner.core.runs import Compiler
from tuner.mlir.fingerprint import CPU_SOURCES, VERIFIER, llvm_version, packages, sources_sha256

# ``buffer-deallocation`` inserts constants into the body of a ``vector.mask``, which holds one op: masks of
# transfers become operands before.
TO_LOOPS = (  # on memrefs and vectors
    "builtin.module(func.func(lower-vector-mask),buffer-deallocation-pipeline,convert-bufferization-to-memref,"
    "func.func(convert-linalg-to-loops,lower-vector-multi-reduction{lowering-strategy=inner-reduction}),"
    "convert-vector-to-scf,fold-memref-alias-ops,expand-strided-metadata,"
    "lower-affine,cse)"
)
# Bare pointers: a kernel takes addresses; sizes and strides are static. Outer products become fma intrinsics.
LOOPS_TO_LLVM = (
    "builtin.module(convert-scf-to-cf,"
    "convert-vector-to-llvm{enable-x86 vector-contract-lowering=outerproduct},"
    "convert-math-to-llvm,convert-ub-to-llvm,finalize-memref-to-llvm,convert-func-to-llvm{use-bare-ptr-memref-call-conv=true},"
    "convert-arith-to-llvm,convert-index-to-llvm,convert-to-llvm{filter-dialects=cf,x86},reconcile-unrealized-casts,cse)"
)
# A fusion of operations (``compile_fusion``). Without a script, tensors become buffers as they are.
TENSORS_TO_BUFFERS = "builtin.module(func.func(eliminate-empty-tensors),one-shot-bufferize)"
STACK_BYTES = 2**20  # buffers of a fusion up to so many bytes are on the stack, of which threads have 8 MiB
FUSION_STACK_BYTES = 4 * STACK_BYTES  # of all buffers of a fusion on the stack
FUSION_TO_LOOPS = (
    "builtin.module(func.func(lower-vector-mask,buffer-hoisting,buffer-loop-hoisting,"
    f"promote-buffers-to-stack{{max-alloc-size-in-bytes={STACK_BYTES} max-rank-of-allocated-memref=8}}),"
    "buffer-deallocation-pipeline,convert-bufferization-to-memref,"
    "func.func(convert-linalg-to-loops,lower-vector-multi-reduction{lowering-strategy=inner-reduction}),"
    "convert-vector-to-scf,fold-memref-alias-ops,expand-strided-metadata,lower-affine,cse)"
)
# Before loops are divided among threads: copies are parallel loops until here.
PARALLEL_TO_LOOPS = "builtin.module(func.func(scf-parallel-for-to-nested-fors))"
# Sums over a vector may be reordered: in order, each addition waits for the one before.
FUSION_LOOPS_TO_LLVM = (
    "builtin.module(convert-scf-to-cf,"
    "convert-vector-to-llvm{enable-x86 reassociate-fp-reductions vector-contract-lowering=outerproduct},"
    "convert-math-to-llvm,convert-ub-to-llvm,finalize-memref-to-llvm,"
    "convert-func-to-llvm{use-bare-ptr-memref-call-conv=true},"
    "convert-arith-to-llvm,convert-index-to-llvm,convert-to-llvm{filter-dialects=cf,x86},"
    "reconcile-unrealized-casts,cse)"
)
EXPORTED = "llvm.emit_c_interface"  # marks entry points: the JIT looks up their packed wrappers
# LLVM's loop idiom pass would call a memset that the JIT's wheel names wrongly: keep loops as loops.
NO_BUILTINS = 'passthrough = ["no-builtins"]'


def cpu_compiler() -> Compiler:
    """Returns what identifies the CPU compiler in results: wheel versions, hash of its sources, verifier.

    Raises PackageNotFoundError if a wheel of MLIR is not installed.
    """
    return Compiler(llvm_version(), packages(), sources_sha256(CPU_SOURCES), VERIFIER)
