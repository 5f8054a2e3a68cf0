"""Child processes that compile, verify and time candidates, and what asks them."""

# What other packages may import; the rest is inside.
__all__ = ["child_process", "pool", "processes", "protocol", "runner", "services", "worker"]
