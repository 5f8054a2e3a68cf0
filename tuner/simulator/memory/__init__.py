"""State spaces, asynchronous copies, data races by vector clocks, bank conflicts."""

# What other packages may import; the rest is inside.
__all__ = ["global_memory"]
