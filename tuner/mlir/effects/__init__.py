"""Alias analysis and side effects: which buffers an operation reads and writes."""

# What other packages may import; the rest is inside.
__all__ = ["accesses", "aliases", "memory_effects", "op_effects", "runner_signatures"]
