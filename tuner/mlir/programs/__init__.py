"""Whole programs in MLIR: entry, matmuls, missing frees, math; whatever they are compiled for."""

# What other packages may import; the rest is inside.
__all__ = [
    "deallocation",
    "entry",
    "host_code",
    "indirect_indices",
    "matmul_replacement",
    "matmuls",
    "payload",
    "row_writes",
]
