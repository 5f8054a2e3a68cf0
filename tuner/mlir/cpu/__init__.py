"""Lowers a script's CPU kernel to LLVM dialect for the JIT."""

# What other packages may import; the rest is inside.
__all__ = [
    "batch_loops",
    "failed_assertions",
    "llvm_modules",
    "lowering",
    "needed_instructions",
    "packs",
    "pipeline",
    "stack_memory",
]
