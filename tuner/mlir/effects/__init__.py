"""Side effects: which buffers an operation reads and writes, which steps of a script change nothing."""

# What other packages may import; the rest is inside.
__all__ = [
    "accesses",
    "aliases",
    "idle_steps",
    "launches",
    "memory_effects",
    "op_effects",
    "runner_signatures",
]
