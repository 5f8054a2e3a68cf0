"""Transform ops that upstream lacks, defined in Python: one per file. Scripts call them in generic syntax."""

from tuner.mlir.ops import bf16_dot, prefetch_reads
from tuner.mlir.ops.dialect import TunerDialect

OPS = (bf16_dot, prefetch_reads)  # a new op is a file and a name here


def load_own_ops() -> None:
    """Registers this project's transform ops in the current context."""
    TunerDialect.load(reload=hasattr(TunerDialect, "_mlir_module"))
    for op in OPS:
        op.attach()
