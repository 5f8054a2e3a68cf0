"""Transform ops that upstream lacks, defined in Python: one per file. Scripts call them in generic syntax."""

from tuner.mlir.ops import (
    bf16_dot,
    bound_loads,
    bypass_l1,
    element_types,
    finish_stores,
    fix_transposed_a,
    insert_barriers,
    merge_ldmatrix,
    prefetch_reads,
    set_aside_epilogue,
    shared_layout,
    split_k,
    swizzle_blocks,
    unroll_inner_loops,
    use_tf32,
)
from tuner.mlir.ops.dialect import TunerDialect

# A new op is a file and a name here.
OPS = (
    bf16_dot,
    prefetch_reads,
    unroll_inner_loops,
    bound_loads,
    bypass_l1,
    element_types,
    finish_stores,
    fix_transposed_a,
    insert_barriers,
    merge_ldmatrix,
    set_aside_epilogue,
    shared_layout,
    split_k,
    swizzle_blocks,
    use_tf32,
)


def load_own_ops() -> None:
    """Registers this project's transform ops in the current context."""
    TunerDialect.load(reload=hasattr(TunerDialect, "_mlir_module"))
    for op in OPS:
        op.attach()
